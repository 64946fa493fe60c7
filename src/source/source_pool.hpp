// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "net/http_client.hpp"
#include "source/hf/hub_pool.hpp"
#include "source/source.hpp"

#include <map>
#include <string>
#include <utility>

namespace weightfs::source {

/// One shared Source per reference, so that what was learned about a server is known to every fill.
/// Thread-safe. `http` must outlive it and its sources.
class SourcePool {
 public:
  explicit SourcePool(net::HttpClient& http, HubAccess hub = {})
      : http_(http), hubs_(http, std::move(hub)) {}

  /// Made where it is not there yet; touches neither disk nor network. Error: kInvalid,
  /// kUnsupported.
  [[nodiscard]] SourcePtr get(const std::string& reference);

 private:
  net::HttpClient& http_;
  HubPool hubs_;
  Synchronized<std::map<std::string, SourcePtr>> sources_;  ///< by normalised reference
};

}  // namespace weightfs::source
