// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/response_parser.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <charconv>

namespace weightfs::net {

namespace {

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The three digits after the first space of "HTTP/1.1 206 Partial Content".
int status_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  int status = 0;
  if (space != std::string_view::npos) {
    const std::string_view rest = line.substr(space + 1);
    std::from_chars(rest.data(), rest.data() + rest.size(), status);
  }
  if (status < 100 || status > 599) throw Error(Errc::kInvalid, "an answer without a status");
  return status;
}

}  // namespace

bool ResponseParser::take_line(std::string_view line) {
  bytes_ += line.size();
  if (bytes_ > kMaxHeaderBytes) {
    throw Error(Errc::kInvalid, "an answer with more than " + std::to_string(kMaxHeaderBytes) +
                                    " bytes of headers");
  }
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (complete_) return false;
  if (line.starts_with("HTTP/")) {
    head_.headers.clear();
    head_.status = status_of(line);
    return false;
  }
  if (!line.empty()) {
    take_header(line);
    return false;
  }
  complete_ = head_.status >= 200;
  return complete_;
}

void ResponseParser::take_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos || line.front() == ' ' ||
      line.front() == '\t') {
    throw Error(Errc::kInvalid, "an answer with a malformed header line");
  }
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  head_.headers.emplace(std::move(name), trim(line.substr(colon + 1)));
}

}  // namespace weightfs::net
