// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "source/hf/hub_pool.hpp"
#include "source/source.hpp"
#include "source/web.hpp"

#include <map>
#include <string>
#include <utility>

namespace weightfs::source {

/// One shared Source per reference, so that what was learned about a server is known to every fill.
/// Thread-safe. What `web` refers to must outlive it and its sources.
class SourcePool {
 public:
  explicit SourcePool(Web web, HubAccess hub = {}) : web_(web), hubs_(web, std::move(hub)) {}

  /// Made where it is not there yet; touches neither disk nor network. Error: kInvalid,
  /// kUnsupported.
  [[nodiscard]] SourcePtr get(const std::string& reference);

 private:
  const Web web_;
  HubPool hubs_;
  Synchronized<std::map<std::string, SourcePtr>> sources_;  ///< by normalised reference
};

}  // namespace weightfs::source
