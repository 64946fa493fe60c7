// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/context.hpp"

#include "base/error.hpp"
#include "cli/exit_code.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <thread>

namespace weightfs::cli {

SettingSources Context::setting_sources() const {
  SettingSources sources;
  sources.environment = environment_;
  sources.processors = std::max(1U, std::thread::hardware_concurrency());
  if (!options_.config.empty()) sources.config = options_.config;
  if (!options_.socket.empty()) {
    sources.flags["socket"] = std::filesystem::absolute(options_.socket).string();
  }
  return sources;
}

std::string Context::socket() const {
  try {
    return load_setting("socket", setting_sources()).value;
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

void Context::print_json(const nlohmann::ordered_json& json) const {
  streams_.out << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
               << '\n';
}

}  // namespace weightfs::cli
