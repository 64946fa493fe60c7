// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/reference.hpp"
#include "source/hf/hub_pool.hpp"
#include "source/source.hpp"
#include "source/web.hpp"

namespace weightfs::source {

/// Makes the Source for a reference. What `web` refers to and `hubs` must outlive it.
/// Error(kUnsupported) for a scheme that this build does not have. Touches neither disk nor
/// network.
[[nodiscard]] SourcePtr make_source(const snapshot::Reference& reference, Web web, HubPool& hubs);

}  // namespace weightfs::source
