// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/exit_code.hpp"

#include "base/error.hpp"
#include "weightfs/client.hpp"

namespace weightfs::cli {

ExitCode exit_code(std::string_view error_name) noexcept {
  if (error_name == api::ClientError::kUnreachable) return ExitCode::kUnreachable;
  if (error_name == name(Errc::kNotFound) || error_name == name(Errc::kNotReady)) {
    return ExitCode::kNotReady;
  }
  return ExitCode::kFailed;
}

}  // namespace weightfs::cli
