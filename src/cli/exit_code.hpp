// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace weightfs::cli {

/// What a command ends with; part of the interface that scripts rely on.
enum class ExitCode {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kNotReady = 3,     ///< not ready, or not found
  kUnreachable = 4,  ///< no daemon
};

/// The exit code for an error's name (Errc) or the client's "unreachable".
[[nodiscard]] ExitCode exit_code(std::string_view error_name) noexcept;

/// The command line or the configuration is wrong: ExitCode::kUsage.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace weightfs::cli
