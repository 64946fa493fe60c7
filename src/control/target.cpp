// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/target.hpp"

#include "base/error.hpp"
#include "net/percent_encoding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::control {

namespace {

std::string decode(std::string_view text) {
  auto bytes = net::percent_decode(text);
  if (!bytes) throw Error(Errc::kInvalid, "broken %-escape in the request's target");
  if (bytes->find('\0') != std::string::npos) {
    throw Error(Errc::kInvalid, "NUL in the request's target");
  }
  return *std::move(bytes);
}

}  // namespace

bool Target::flag(const std::string& name) const {
  const auto found = parameters.find(name);
  if (found == parameters.end() || found->second == "0" || found->second == "false") return false;
  if (found->second == "1" || found->second == "true") return true;
  throw Error(Errc::kInvalid, fmt::format("the parameter {} must be 0 or 1", name));
}

Target parse_target(std::string_view text) {
  if (text.empty() || text.front() != '/') {
    throw Error(Errc::kInvalid, "the request's target must begin with /");
  }
  const std::size_t question = std::min(text.find('?'), text.size());
  std::string_view path = text.substr(0, question);
  std::string_view query = text.substr(std::min(question + 1, text.size()));

  Target target;
  const std::size_t colon = path.rfind(':');
  if (colon != std::string_view::npos && path.find('/', colon) == std::string_view::npos) {
    target.action = decode(path.substr(colon + 1));
    path = path.substr(0, colon);
  }
  target.path = decode(path);

  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    target.parameters[decode(pair.substr(0, equals))] =
        decode(pair.substr(std::min(equals + 1, pair.size())));
  }
  return target;
}

}  // namespace weightfs::control
