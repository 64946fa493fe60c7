// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::control {

Json parse_json(std::string_view text) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw Error(Errc::kInvalid, fmt::format("not JSON: {}", error.what()));
  }
}

std::string dump_json(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void refuse_field(std::string_view key, std::string_view expected) {
  throw Error(Errc::kInvalid, fmt::format("{} must be {}", key, expected));
}

}  // namespace weightfs::control
