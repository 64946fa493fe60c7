// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/command.hpp"

#include <span>

namespace weightfs::cli {

/// Every command, in the order of the help. Each stands in a file of its own name.
[[nodiscard]] std::span<const CommandEntry> command_table();

[[nodiscard]] CommandEntry add_command();
[[nodiscard]] CommandEntry config_check_command();
[[nodiscard]] CommandEntry config_diff_command();
[[nodiscard]] CommandEntry reload_command();
[[nodiscard]] CommandEntry confirm_command();
[[nodiscard]] CommandEntry daemon_command();
[[nodiscard]] CommandEntry events_command();
[[nodiscard]] CommandEntry evict_command();
[[nodiscard]] CommandEntry import_command();
[[nodiscard]] CommandEntry prune_command();
[[nodiscard]] CommandEntry keeper_command();
[[nodiscard]] CommandEntry lease_ls_command();
[[nodiscard]] CommandEntry lease_put_command();
[[nodiscard]] CommandEntry lease_rm_command();
[[nodiscard]] CommandEntry ls_command();
[[nodiscard]] CommandEntry man_command();
[[nodiscard]] CommandEntry manifest_command();
[[nodiscard]] CommandEntry mode_command();
[[nodiscard]] CommandEntry mount_command();
[[nodiscard]] CommandEntry pin_command();
[[nodiscard]] CommandEntry replay_command();
[[nodiscard]] CommandEntry rm_command();
[[nodiscard]] CommandEntry rollback_command();
[[nodiscard]] CommandEntry status_command();
[[nodiscard]] CommandEntry unmount_command();
[[nodiscard]] CommandEntry unpin_command();
[[nodiscard]] CommandEntry update_command();
[[nodiscard]] CommandEntry verify_command();
[[nodiscard]] CommandEntry wait_command();
[[nodiscard]] CommandEntry warm_command();
[[nodiscard]] CommandEntry why_command();

}  // namespace weightfs::cli
