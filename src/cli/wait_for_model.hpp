// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/context.hpp"
#include "cli/exit_code.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace weightfs::cli {

/// Warms a model and waits until every byte is verified, with progress on a terminal: the work of
/// `wait` and of `warm --wait`. kDone, kNotReady when the time is over, kFailed when a file failed;
/// says which.
///
/// A daemon that goes away meanwhile is waited for (half a minute): it resumes where it was. The
/// timeout holds whatever the daemon does; one that never answered is a ClientError.
[[nodiscard]] ExitCode wait_for_model(Context& context, const std::string& name,
                                      std::optional<std::chrono::milliseconds> timeout);

}  // namespace weightfs::cli
