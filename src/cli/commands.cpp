// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include <vector>

namespace weightfs::cli {

std::span<const CommandEntry> command_table() {
  static const std::vector<CommandEntry> table{
      mount_command(),       keeper_command(),   daemon_command(), unmount_command(),
      status_command(),      mode_command(),     why_command(),    events_command(),
      ls_command(),          add_command(),      rm_command(),     update_command(),
      confirm_command(),     rollback_command(), warm_command(),   wait_command(),
      import_command(),      pin_command(),      unpin_command(),  lease_put_command(),
      lease_ls_command(),    lease_rm_command(), evict_command(),  prune_command(),
      verify_command(),      manifest_command(), replay_command(), config_check_command(),
      config_diff_command(), reload_command(),   man_command(),
  };
  return table;
}

}  // namespace weightfs::cli
