// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/validator.hpp"

#include "base/error.hpp"
#include "net/http_date.hpp"
#include "net/percent_encoding.hpp"
#include "snapshot/byte_text.hpp"
#include "source/http/content_range.hpp"

#include <algorithm>

namespace weightfs::source {

using snapshot::printable;

namespace {

/// A header that is longer is not worth keeping for each file of a snapshot.
constexpr std::size_t kMaxHeader = 1024;

constexpr std::string_view kEtag = "etag=";
constexpr std::string_view kModified = "modified=";
constexpr std::string_view kLength = "length=";

std::string kept_header(const net::ResponseHead& head, const std::string& name) {
  std::string value = head.header(name).value_or("");
  return value.size() <= kMaxHeader ? value : std::string();
}

/// `"..."` of visible bytes: what If-Match may carry. W/"..." is weak, and some servers leave the
/// quotes out.
bool is_strong(std::string_view etag) {
  if (etag.size() < 2 || etag.front() != '"' || etag.back() != '"') return false;
  return std::ranges::all_of(etag.substr(1, etag.size() - 2), [](char c) {
    const auto value = static_cast<unsigned char>(c);
    return value > 0x20 && value != 0x7f && c != '"';
  });
}

/// The value behind `key` if `text` starts with it, up to ';', which is cut off the front.
std::optional<std::string> take(std::string_view& text, std::string_view key) {
  if (!text.starts_with(key)) return std::nullopt;
  const std::size_t end = std::min(text.find(';'), text.size());
  const auto value = net::percent_decode(text.substr(key.size(), end - key.size()));
  text.remove_prefix(std::min(end + 1, text.size()));
  return value;
}

}  // namespace

Validator Validator::of(const net::ResponseHead& head, std::uint64_t length) {
  return {.etag = kept_header(head, "etag"),
          .last_modified = kept_header(head, "last-modified"),
          .length = length};
}

std::string Validator::text() const {
  std::string text;
  if (!etag.empty()) text += std::string(kEtag) + net::percent_encode(etag) + ";";
  if (!last_modified.empty()) {
    text += std::string(kModified) + net::percent_encode(last_modified) + ";";
  }
  return text + std::string(kLength) + std::to_string(length);
}

Validator Validator::parse(std::string_view text) {
  Validator validator;
  validator.etag = take(text, kEtag).value_or("");
  validator.last_modified = take(text, kModified).value_or("");
  const auto length = parse_length(take(text, kLength).value_or(""));
  if (!length || !text.empty()) {
    throw Error(Errc::kInvalid, "a validator that no HTTP source has written");
  }
  validator.length = *length;
  return validator;
}

std::optional<std::pair<std::string, std::string>> Validator::precondition() const {
  if (is_strong(etag)) return std::pair("If-Match", etag);
  if (net::parse_http_date(last_modified)) return std::pair("If-Unmodified-Since", last_modified);
  return std::nullopt;
}

std::optional<std::string> Validator::difference(const net::ResponseHead& head) const {
  const auto now_etag = head.header("etag");
  const auto now_modified = head.header("last-modified");
  if (!etag.empty() && now_etag) {
    if (*now_etag == etag) return std::nullopt;
    return "its ETag is " + printable(*now_etag) + " and was " + printable(etag);
  }
  if (!last_modified.empty() && now_modified) {
    if (*now_modified == last_modified) return std::nullopt;
    return "it was modified " + printable(*now_modified) + ", before that " +
           printable(last_modified);
  }
  if (etag.empty() && last_modified.empty()) return std::nullopt;
  return "the answer does not say which version it is";
}

}  // namespace weightfs::source
