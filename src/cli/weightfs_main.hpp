// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/streams.hpp"

#include <span>
#include <string>

namespace weightfs::cli {

/// The whole program but for its streams: parses, runs one command, returns the exit status.
/// `arguments` are those after the program's name.
[[nodiscard]] int weightfs_main(std::span<const std::string> arguments, Streams& streams,
                                const Environment& environment);

/// The same with this process's streams and environment.
[[nodiscard]] int weightfs_main(int argc, const char* const* argv);

}  // namespace weightfs::cli
