// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "source/hf/hub.hpp"
#include "source/hf/hub_token.hpp"
#include "source/web.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace weightfs::source {

/// Which Hub is asked, and as whom.
struct HubAccess {
  std::string endpoint = "https://huggingface.co";
  std::string token;                 ///< empty: what token_file has
  std::filesystem::path token_file;  ///< empty, or absent: no token
  std::chrono::milliseconds patience = HubClient::Options{}.patience;
};

/// One shared Hub per endpoint. The token is for the endpoint of the HubAccess alone: those that a
/// source names itself are asked with the credentials for them, if there are any. Thread-safe. What
/// `web` refers to must outlive it and its Hubs, and it its Hubs.
class HubPool {
 public:
  /// Error(kInvalid) for an endpoint that is no URL.
  HubPool(Web web, HubAccess access);

  /// "" is the endpoint of the HubAccess.
  [[nodiscard]] std::shared_ptr<Hub> at(const std::string& endpoint);

 private:
  const Web web_;
  const HubAccess access_;
  HubToken token_;
  Synchronized<std::map<std::string, std::shared_ptr<Hub>>> hubs_;
};

}  // namespace weightfs::source
