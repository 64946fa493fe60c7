// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/context.hpp"
#include "cli/exit_code.hpp"
#include "cli/options.hpp"

#include <memory>
#include <string_view>

namespace weightfs::cli {

/// One command of the command line: made, told its options by the parser, run once. Failures are
/// exceptions: UsageError, Error, api::ClientError.
class Command {
 public:
  virtual ~Command() = default;
  /// Binds options and arguments to members.
  virtual void declare(Options& options) = 0;
  [[nodiscard]] virtual ExitCode run(Context& context) = 0;
};

enum class Visibility { kShown, kHidden };

/// What the table of commands holds. The texts are the help and the manual page.
struct CommandEntry {
  /// "add", or "config check" for a command of a group.
  std::string_view name;
  std::string_view summary;  ///< one line, no full stop
  std::string_view text;     ///< paragraphs, parted by empty lines
  std::unique_ptr<Command> (*make)();
  Visibility visibility = Visibility::kShown;
};

}  // namespace weightfs::cli
