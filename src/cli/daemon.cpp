// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/control_socket.hpp"
#include "cli/daemon_directories.hpp"
#include "cli/descriptor_limit.hpp"
#include "cli/drop_privileges.hpp"
#include "cli/model_check.hpp"
#include "cli/node.hpp"
#include "cli/outside_mount.hpp"
#include "cli/predecessor.hpp"
#include "cli/setting_flags.hpp"
#include "cli/stop_signals.hpp"
#include "fuse/session_records.hpp"
#include "keeper/exit_status.hpp"
#include "keeper/session_memory.hpp"

#include <unistd.h>
#include <utility>

namespace weightfs::cli {

namespace {

// What a restart cannot mend: the keeper gives up at once.
bool needs_a_person(Errc code) {
  switch (code) {
    case Errc::kInvalid:
    case Errc::kUnsupported:
    case Errc::kPermission:
    case Errc::kBusy:
    case Errc::kCorrupt:
    case Errc::kNoSpace:
    case Errc::kIo:
      return true;
    case Errc::kNotFound:
    case Errc::kTimedOut:
    case Errc::kUnavailable:
    case Errc::kChanged:
    case Errc::kNotReady:
    case Errc::kCancelled:
    case Errc::kInternal:
      return false;
  }
  return false;
}

// Of those, what may be over in a minute, and is no reason to give up a mount that has readers.
bool may_pass(Errc code) {
  return code == Errc::kBusy || code == Errc::kNoSpace || code == Errc::kIo;
}

class DaemonCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.option({"--keeper", "PATH", "The socket that weightfs keeper listens on."},
                   keeper_socket_);
    options.descriptor(
        {"--keeper-fd", "NUMBER", "Instead of --keeper: a connected socket, inherited."},
        keeper_fd_);
    options.descriptor({"--control-fd", "NUMBER", "An inherited control socket, listening."},
                       control_fd_);
    flags_.declare(options);
  }

  ExitCode run(Context& context) override {
    if (keeper_socket_.empty() == (keeper_fd_ < 0)) {
      throw UsageError("either --keeper or --keeper-fd says where the keeper is");
    }
    const OutsideMount outside;
    outside.check("the keeper's socket", keeper_socket_);
    outside.check("the configuration file", config_file(context.setting_sources()));
    std::string mistake;  // in the configuration
    std::optional<LoadedSettings> loaded = load_if_right(context, mistake);
    const Fd stop = block_stop_signals();
    const Fd reload = reload_signal();
    raise_descriptor_limit();
    bool served = false;  // by an earlier daemon
    try {
      keeper::KeeperClient keeper = keeper_socket_.empty()
                                        ? keeper::KeeperClient(Fd(keeper_fd_))
                                        : keeper::KeeperClient::connect(keeper_socket_);
      std::optional<keeper::Session> session;
      const auto hello = [&] {
        served = true;  // where the hello says kBusy, it is
        session = after_predecessor([&] { return keeper.hello(); });
        served = is_served(*session);
      };
      if (!loaded) {
        hello();
        loaded = load_as_before(context, *session, mistake);
      }
      outside.check(loaded->settings);
      const Log log = Log::to_stderr(loaded->settings.log_level);
      if (!mistake.empty()) log.error("going on with the configuration as it was: {}", mistake);
      control::ListenSocket control = prepare(loaded->settings);
      if (!session) hello();
      Node node(
          {.loaded = *loaded, .mistake = mistake, .load = [&] { return load_again(context); }},
          {.keeper = std::move(keeper), .control = std::move(control)}, *std::move(session), log);
      // 0 would tell the keeper to unmount.
      if (node.run(stop.value(), reload.value()) == Node::End::kLost) return ExitCode::kFailed;
    } catch (const Error& error) {
      context.streams().err << "weightfs daemon: " << error.what() << std::endl;
      // Not an ExitCode: this one speaks to the keeper.
      if (needs_a_person(error.code()) && !(served && may_pass(error.code()))) {
        ::_exit(keeper::kDaemonFatal);
      }
      return ExitCode::kFailed;
    }
    return ExitCode::kDone;
  }

 private:
  static bool is_served(const keeper::Session& session) {
    return keeper::SessionMemory(session.memory).init_state() ==
           keeper::SessionMemory::InitState::kDone;
  }

  std::optional<LoadedSettings> load_if_right(const Context& context, std::string& mistake) const {
    try {
      return flags_.load(context);
    } catch (const UsageError& error) {
      mistake = error.what();
      return std::nullopt;
    }
  }

  /// What a daemon before this one went by: a mount must not end because somebody has made a
  /// mistake in a file since.
  LoadedSettings load_as_before(const Context& context, const keeper::Session& session,
                                const std::string& mistake) const {
    const auto text = fuse::SessionRecords::configuration(keeper::SessionMemory(session.memory));
    if (!text) throw UsageError(mistake);
    return flags_.load(context, text);
  }

  LoadedSettings load_again(const Context& context) const {
    try {
      LoadedSettings loaded = flags_.load(context);
      check_models(loaded.settings.models);
      return loaded;
    } catch (const UsageError& error) {
      throw Error(Errc::kInvalid, error.what());
    }
  }

  // Does what needs privilege, and gives it up.
  [[nodiscard]] control::ListenSocket prepare(const Settings& settings) const {
    if (control_fd_ >= 0) return control::ListenSocket(Fd(control_fd_));
    const ProcessUser user = find_user(settings.user);
    control::ListenSocket control = make_control_socket(settings.socket, user);
    if (::geteuid() == 0) {
      prepare_directories(settings, user);
      drop_privileges(user);
    }
    return control;
  }

  std::string keeper_socket_;
  int keeper_fd_ = -1;
  int control_fd_ = -1;
  SettingFlags flags_;
};

}  // namespace

CommandEntry daemon_command() {
  return {
      .name = "daemon",
      .summary = "Serve the mount that a keeper holds",
      .text =
          "The unprivileged half of weightfs mount alone, for units and containers. Started as "
          "root it "
          "makes and gives away its directories, then becomes --user and drops every capability. A "
          "daemon that takes the place of another goes on with what that one had open.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<DaemonCommand>()); },
  };
}

}  // namespace weightfs::cli
