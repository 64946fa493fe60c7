// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/context.hpp"
#include "cli/options.hpp"
#include "cli/settings.hpp"

#include <map>
#include <string>
#include <vector>

namespace weightfs::cli {

/// The settings as flags of a command: what mount, keeper, daemon and `config check` have in
/// common. A member of the command; must outlive the parsing.
class SettingFlags {
 public:
  /// Declares a flag for every setting but the socket, which every command has, and --model.
  void declare(Options& options);
  /// Flags, environment and file together. UsageError with what is wrong and where it stands. Paths
  /// in flags are relative to the working directory.
  [[nodiscard]] LoadedSettings load(const Context& context) const { return load(context, {}); }
  /// The same with `file_text` in place of what the file has.
  [[nodiscard]] LoadedSettings load(const Context& context,
                                    const std::optional<std::string>& file_text) const;
  /// The same flags again, for a process that is to have the same settings; with --config, but not
  /// --socket.
  [[nodiscard]] std::vector<std::string> arguments(const Context& context) const;

 private:
  std::map<std::string, std::string> values_;  ///< by setting name
  std::vector<std::string> models_;
};

}  // namespace weightfs::cli
