// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/hub_pool.hpp"

#include "snapshot/hub_reference.hpp"

#include <utility>

namespace weightfs::source {

namespace {

HubAccess normal(HubAccess access) {
  access.endpoint = snapshot::hub_endpoint(access.endpoint);
  return access;
}

}  // namespace

HubPool::HubPool(Web web, HubAccess access)
    : web_(web), access_(normal(std::move(access))), token_(access_.token, access_.token_file) {
}

std::shared_ptr<Hub> HubPool::at(const std::string& endpoint) {
  const bool usual = endpoint.empty() || endpoint == access_.endpoint;
  const std::string& address = usual ? access_.endpoint : endpoint;
  return hubs_.with([&](auto& hubs) {
    std::shared_ptr<Hub>& hub = hubs[address];
    if (!hub) {
      hub = std::make_shared<Hub>(
          web_, HubClient::Options{.endpoint = address, .patience = access_.patience},
          usual ? &token_ : nullptr);
    }
    return hub;
  });
}

}  // namespace weightfs::source
