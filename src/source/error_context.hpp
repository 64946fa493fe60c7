// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>

namespace weightfs::source {

/// In a handler: throws the Error that is being handled again, as what it is (transient or not, its
/// code, its wait), with `context` and ": " before its message. Anything else goes on unchanged.
[[noreturn]] void rethrow_with(const std::string& context);

}  // namespace weightfs::source
