// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

namespace weightfs::store {

/// Of a partial blob: there is none, nobody works on it, or somebody does.
enum class PartialUse { kNone, kIdle, kFilling };

}  // namespace weightfs::store
