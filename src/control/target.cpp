// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/target.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weightfs::control {

namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) throw Error(Errc::kInvalid, "broken %-escape in the request's target");
    bytes += static_cast<char>(high << 4 | low);
    i += 2;
  }
  if (bytes.find('\0') != std::string::npos) {
    throw Error(Errc::kInvalid, "NUL in the request's target");
  }
  return bytes;
}

std::string encode(std::string_view bytes, std::string_view kept) {
  std::string text;
  for (const char c : bytes) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kept.find(c) != std::string_view::npos) {
      text += c;
    } else {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return text;
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

std::string encode_path(std::string_view bytes) {
  return encode(bytes, "-._~/");
}

std::string encode_parameter(std::string_view bytes) {
  return encode(bytes, "-._~");
}

}  // namespace weightfs::control
