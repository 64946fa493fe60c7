// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "cli/outside_mount.hpp"
#include "cli/process_user.hpp"
#include "cli/setting_flags.hpp"
#include "cli/stop_signals.hpp"
#include "keeper/keeper.hpp"

#include <unistd.h>

namespace weightfs::cli {

namespace {

class KeeperCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("MOUNTPOINT", "An existing directory.", mountpoint_);
    options.required_option(
        {"--listen", "PATH", "The unix socket on which the daemon finds the keeper."}, listen_);
    options.option(
        {"--user", "NAME", "Who may connect besides root. Default: weightfs, or else nobody."},
        user_);
  }

  ExitCode run(Context& context) override {
    static_cast<void>(context);
    OutsideMount(mountpoint_).check("the keeper's socket", listen_);
    if (::geteuid() != 0)
      throw Error(Errc::kPermission, "the keeper mounts, and needs root for it");
    const ProcessUser user = find_user(user_);
    const Fd stop = block_stop_signals();
    keeper::Keeper keeper({.mountpoint = std::filesystem::absolute(mountpoint_),
                           .socket = std::filesystem::absolute(listen_),
                           .daemon_uid = user.uid,
                           .daemon_gid = user.gid,
                           .source_name = "weightfs",
                           .daemon_command = {}},
                          Log::to_stderr(LogLevel::kInfo));
    return keeper.run(stop.value()) == 0 ? ExitCode::kDone : ExitCode::kFailed;
  }

 private:
  std::string mountpoint_;
  std::string listen_;
  std::string user_;
};

}  // namespace

CommandEntry keeper_command() {
  return {
      .name = "keeper",
      .summary = "Mount, and hold the mount for a daemon that is started apart",
      .text =
          "The privileged half of weightfs mount alone, for units and containers: it mounts, holds "
          "the "
          "kernel's connection, and hands it to the daemon that connects. Daemons may come and go, "
          "crash or be upgraded; requests wait meanwhile, and files that are open stay open.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<KeeperCommand>()); },
  };
}

}  // namespace weightfs::cli
