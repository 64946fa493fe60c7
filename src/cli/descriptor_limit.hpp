// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

namespace weightfs::cli {

/// Lets this process open as many files as it may: the soft limit is 1024 as a rule, for the sake
/// of programs that call select(), and a daemon needs a descriptor for each open file. Best effort.
void raise_descriptor_limit() noexcept;

}  // namespace weightfs::cli
