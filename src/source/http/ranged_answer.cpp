// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/ranged_answer.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "source/http/content_range.hpp"
#include "source/http/status.hpp"

#include <optional>
#include <string>

namespace weightfs::source {

using snapshot::printable;

namespace {

/// nullopt where the header is absent (chunked, or until the connection closes).
std::optional<std::uint64_t> content_length(const net::ResponseHead& head) {
  const auto value = head.header("content-length");
  if (!value) return std::nullopt;
  const auto length = parse_length(*value);
  if (!length || head.count("content-length") > 1) {
    throw Error(Errc::kInvalid, "sent a Content-Length that is none: " + printable(*value));
  }
  return length;
}

void check_size(std::uint64_t now, std::uint64_t before) {
  if (now == before) return;
  throw Error(Errc::kChanged,
              "it has " + std::to_string(now) + " bytes now and had " + std::to_string(before));
}

RangedAnswer check_range(const net::ResponseHead& head, ByteRange range, std::uint64_t size) {
  const std::string value = head.header("content-range").value_or("");
  const auto sent = parse_content_range(value);
  if (!sent || !sent->range || head.count("content-range") > 1) {
    throw Error(Errc::kInvalid, "sent a range without saying which: " + printable(value));
  }
  if (sent->total) check_size(*sent->total, size);
  // A server may send less than was asked for (RFC 9110, 15.3.7), but not something else.
  if (sent->range->begin != range.begin || sent->range->end > range.end) {
    throw Error(Errc::kInvalid, "sent " + printable(value) + " when asked for " +
                                    std::to_string(range.begin) + "-" +
                                    std::to_string(range.end - 1));
  }
  const auto length = content_length(head);
  if (length && *length != sent->range->size()) {
    throw Error(Errc::kInvalid,
                "sent " + printable(value) + " with a length of " + std::to_string(*length));
  }
  return {.kind = RangedAnswer::Kind::kRange, .body = *sent->range};
}

}  // namespace

RangedAnswer check_answer(const net::ResponseHead& head, ByteRange range, std::uint64_t size,
                          const std::string& credential) {
  if (head.status != 200 && head.status != 206) throw_status(head, credential);
  check_encoding(head);
  if (head.status == 206) return check_range(head, range, size);
  const auto length = content_length(head);
  // An error page or a login form has no Content-Length more often than a file has none.
  if (!length)
    throw Error(Errc::kUnsupported, "sent something whole without saying how long it is");
  check_size(*length, size);
  return {.kind = RangedAnswer::Kind::kWhole, .body = {0, size}};
}

}  // namespace weightfs::source
