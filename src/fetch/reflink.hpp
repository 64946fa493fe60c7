// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fetch/shared_partial.hpp"
#include "fetch/target.hpp"

#include <functional>

namespace weightfs::fetch {

/// Fills the whole partial blob at once and without a copy, where source and store share a
/// filesystem that can; what it has is yet to be marked as written. False where they do not, or
/// where `go_on` says no once the original is open, which can take long: nothing has changed then.
/// Throws Error (kChanged and whatever the source says) where the partial blob may now hold bytes
/// of another version.
[[nodiscard]] bool reflink(const Target& target, SharedPartial& partial,
                           const std::function<bool()>& go_on);

}  // namespace weightfs::fetch
