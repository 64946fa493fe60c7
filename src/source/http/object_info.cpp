// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/object_info.hpp"

#include "base/error.hpp"
#include "net/http_date.hpp"
#include "net/percent_encoding.hpp"
#include "net/url.hpp"
#include "source/http/content_range.hpp"
#include "source/http/status.hpp"

#include <chrono>
#include <optional>

namespace weightfs::source {

namespace {

/// Ends a request whose head said enough.
struct HeadIsEnough {};

ObjectInfo info_of(const net::ResponseHead& head, std::uint64_t length) {
  ObjectInfo info{.validator = Validator::of(head, length)};
  if (const auto modified = net::parse_http_date(info.validator.last_modified)) {
    info.mtime = modified->time_since_epoch().count();
  }
  return info;
}

/// Where a server sends whoever asks for a directory without the '/': what comes from there is a
/// page about it, or a refusal of that page.
void refuse_directory(const net::Url& url, const net::ResponseHead& head) {
  const auto decoded = [](const std::string& path) {
    return net::percent_decode(path).value_or(path);
  };
  const net::Url last = net::Url::parse(head.effective_url);
  if (decoded(last.path()) != decoded(url.path()) + "/") return;
  throw Error(Errc::kInvalid, "is a directory: put a '/' at the end of its URL");
}

bool is_compressed(const net::ResponseHead& head) {
  return head.header("content-encoding").value_or("identity") != "identity";
}

/// Servers that do not do HEAD say so in many ways; what is plain about the object itself is
/// believed.
bool head_is_final(int status) {
  return status == 401 || status == 404 || status == 407 || status == 408 || status == 410 ||
         status == 425 || status == 429 || (status >= 500 && status != 501);
}

std::optional<ObjectInfo> ask_with_head(const Web& web, const net::Url& url,
                                        const Credential& credential, const std::stop_token& stop) {
  const net::Request request{.method = net::Method::kHead,
                             .url = url.text(),
                             .headers = credential.headers,
                             .tls = credential.tls};
  const net::ResponseHead head = web.http().fetch(request, 0, stop).first;
  refuse_directory(url, head);
  if (head_is_final(head.status)) throw_status(head, credential.origin);
  if (head.status != 200 || is_compressed(head)) return std::nullopt;
  const auto length = parse_length(head.header("content-length").value_or(""));
  if (!length) return std::nullopt;
  return info_of(head, *length);
}

std::optional<std::uint64_t> length_in(const net::ResponseHead& head) {
  if (head.status == 200) return parse_length(head.header("content-length").value_or(""));
  const auto range = parse_content_range(head.header("content-range").value_or(""));
  if (!range) return std::nullopt;
  // An empty file has no first byte: 416 with "bytes */0".
  if (head.status == 416 && range->total != 0U) return std::nullopt;
  return range->total;
}

}  // namespace

ObjectInfo ask_about(const Web& web, const net::Url& url, const std::stop_token& stop) {
  const Credential credential = web.credential(url);
  const auto from_head = ask_with_head(web, url, credential, stop);
  // Some servers answer every HEAD with a length of 0: an empty file is worth a second question.
  if (from_head && from_head->validator.length > 0) return *from_head;

  std::optional<ObjectInfo> info;
  const auto on_head = [&](const net::ResponseHead& head) {
    refuse_directory(url, head);
    auto length = length_in(head);
    if (!length && head.status == 416 && from_head) length = 0;
    if (head.status != 200 && head.status != 206 && !(head.status == 416 && length)) {
      throw_status(head, credential.origin);
    }
    check_encoding(head);
    if (!length) throw Error(Errc::kUnsupported, "does not say how long it is");
    info = info_of(head, *length);
    throw HeadIsEnough();
  };
  try {
    const net::Request request{
        .url = url.text(), .headers = credential.headers, .range = {{0, 0}}, .tls = credential.tls};
    web.http().perform(request, on_head, [](auto) {}, stop);
  } catch (const HeadIsEnough&) {
  }
  return info.value();
}

}  // namespace weightfs::source
