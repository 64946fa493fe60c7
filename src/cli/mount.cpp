// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/file.hpp"
#include "cli/control_socket.hpp"
#include "cli/credential_check.hpp"
#include "cli/daemon_directories.hpp"
#include "cli/detach.hpp"
#include "cli/log_file.hpp"
#include "cli/outside_mount.hpp"
#include "cli/printable.hpp"
#include "cli/setting_flags.hpp"
#include "cli/stop_signals.hpp"
#include "keeper/keeper.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace weightfs::cli {

namespace {

constexpr const char* kControlPlaceholder = "{control-fd}";

class MountCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("MOUNTPOINT", "An existing directory.", mountpoint_);
    options.flag("--detach", "Return once the mount is ready, and go on in the background.",
                 detach_);
    flags_.declare(options);
  }

  ExitCode run(Context& context) override {
    const OutsideMount outside(mountpoint_);
    outside.check("the configuration file", config_file(context.setting_sources()));
    const Settings settings = flags_.load(context).settings;
    outside.check(settings);
    check_credentials(settings, outside);
    if (::geteuid() != 0) {
      throw Error(Errc::kPermission,
                  "mounting needs root; the daemon itself runs without privilege");
    }
    const ProcessUser user = find_user(settings.user);
    prepare_directories(settings, user);
    if (detach_ && !continue_detached(context, settings, user)) return detached_;

    const Fd stop = block_stop_signals();
    const Fd reload = reload_signal();
    // Made here, where the privilege is. It outlives each daemon: a client that comes while one is
    // replaced waits in its queue.
    const control::ListenSocket control = make_control_socket(settings.socket, user);
    keeper::Keeper keeper({.mountpoint = std::filesystem::absolute(mountpoint_),
                           .socket = {},
                           .daemon_uid = user.uid,
                           .daemon_gid = user.gid,
                           .source_name = "weightfs",
                           .daemon_command = daemon_arguments(context),
                           .inherited = {{kControlPlaceholder, control.fd().value()}},
                           .reload_descriptor = reload.value()},
                          Log::to_stderr(settings.log_level));
    return keeper.run(stop.value()) == 0 ? ExitCode::kDone : ExitCode::kFailed;
  }

 private:
  // True in the process that serves; in the parent, detached_ is how that came up.
  bool continue_detached(Context& context, const Settings& settings, const ProcessUser& user) {
    const std::filesystem::path path = settings.state / "weightfs.log";
    const Fd log = open_log_file(path, user);
    const off_t before = ::lseek(log.value(), 0, SEEK_END);
    std::optional<api::Status> status;
    // Another daemon may answer on the same socket: the one that keeps this one from starting.
    const auto is_ready = [&](pid_t keeper) {
      status = status_of(context);
      return status && status->keeper_pid == keeper;
    };
    const Detached outcome = detach({.log = log, .is_ready = is_ready});
    if (outcome.as == Detached::As::kChild) return true;
    if (outcome.as == Detached::As::kReady) {
      tell_of_missing(status->missing_models, context.streams());
      detached_ = ExitCode::kDone;
      return false;
    }
    std::ostream& err = context.streams().err;
    copy_from(log, before, err);
    err << "weightfs: the mount did not become ready; this was in " << path.string() << "\n";
    // What the same command says in the foreground.
    constexpr auto kNotFound = ExitCode::kNotReady;
    const bool not_found = outcome.exit_status == static_cast<int>(kNotFound);
    detached_ = not_found ? kNotFound : ExitCode::kFailed;
    return false;
  }

  // From the descriptor, because the path belongs to the daemon's user.
  static void copy_from(const Fd& log, off_t begin, std::ostream& out) {
    std::array<char, 4096> words{};
    for (auto at = static_cast<std::uint64_t>(begin);;) {
      const std::size_t got = read_at(log, at, std::as_writable_bytes(std::span(words)));
      if (got == 0) return;
      out.write(words.data(), static_cast<std::streamsize>(got));
      at += got;
    }
  }

  static std::optional<api::Status> status_of(const Context& context) {
    try {
      return context.client().status();
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

  // The mount serves without them, so the command has done its work.
  static void tell_of_missing(const std::vector<api::MissingModel>& missing, Streams& streams) {
    for (const api::MissingModel& model : missing) {
      streams.err << fmt::format("weightfs: mounted without {}: {}{}\n", printable(model.name),
                                 printable(model.error.message),
                                 model.retrying ? "; the daemon goes on trying" : "");
    }
  }

  // The daemon reads the same environment and configuration, and gets the same flags. Through
  // /proc/self/exe, it can run a program whose folder its user may not enter.
  [[nodiscard]] std::vector<std::string> daemon_arguments(const Context& context) const {
    std::vector<std::string> command = {"/proc/self/exe", "daemon",
                                        "--keeper-fd",    keeper::kSocketPlaceholder,
                                        "--control-fd",   kControlPlaceholder,
                                        "--socket",       context.socket()};
    for (std::string& argument : flags_.arguments(context)) command.push_back(std::move(argument));
    return command;
  }

  std::string mountpoint_;
  bool detach_ = false;
  ExitCode detached_ = ExitCode::kFailed;
  SettingFlags flags_;
};

}  // namespace

CommandEntry mount_command() {
  return {
      .name = "mount",
      .summary = "Mount the models and serve them",
      .text =
          "Starts the keeper in this process, which mounts and supervises, and the daemon below "
          "it, "
          "which runs as --user without any privilege and does everything else. Runs in the "
          "foreground until SIGTERM, SIGINT or weightfs unmount; SIGHUP is weightfs reload; with "
          "--detach it returns once the "
          "mount is ready and logs to weightfs.log in the state directory. A --model that could "
          "not be added does not end the mount: the log and weightfs status say why, --detach says "
          "it on standard error, too, and still returns 0. What was out of reach is tried again."
          "\n\n"
          "The store is a cache and can be wiped at any time; the state holds the catalog. Both "
          "are "
          "made where they are missing and given to the daemon's user; a directory that holds "
          "anything else is refused, and so is one that overlaps with the mount point: the daemon "
          "would wait for itself. A mount that a dead keeper left behind is replaced.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<MountCommand>()); },
  };
}

}  // namespace weightfs::cli
