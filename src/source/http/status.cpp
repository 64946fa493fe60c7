// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/status.hpp"

#include "base/error.hpp"
#include "net/retry_policy.hpp"
#include "snapshot/byte_text.hpp"

#include <strings.h>
#include <chrono>

namespace weightfs::source {

void check_encoding(const net::ResponseHead& head) {
  const std::string encoding = head.header("content-encoding").value_or("identity");
  if (::strcasecmp(encoding.c_str(), "identity") != 0) {
    throw Error(Errc::kUnsupported,
                "sent " + snapshot::printable(encoding) + " although plain bytes were asked for");
  }
  const std::string type = head.header("content-type").value_or("");
  if (::strncasecmp(type.c_str(), "multipart/byteranges", 20) == 0) {
    throw Error(Errc::kUnsupported, "sent several parts although one range was asked for");
  }
}

void throw_status(const net::ResponseHead& head, const std::string& credential) {
  const std::string text = "answered " + std::to_string(head.status);
  switch (head.status) {
    case 401:
    case 403:
    case 407:
      throw Error(Errc::kPermission,
                  text + (credential.empty() ? " (no credentials were sent)"
                                             : " (to the credentials of " + credential + ")"));
    case 404:
    case 410:
      throw Error(Errc::kNotFound, text);
    case 412:
      throw Error(Errc::kChanged, text + ": it is another version now");
    case 416:
      throw Error(Errc::kChanged, text + ": it does not have these bytes now");
    default:
      break;
  }
  if (head.status == 408 || head.status == 425 || head.status == 429 || head.status >= 500) {
    throw TransientError(Errc::kUnavailable, text,
                         net::parse_retry_after(head.header("retry-after").value_or(""),
                                                std::chrono::system_clock::now()));
  }
  throw Error(Errc::kInvalid, text + ", which is no answer to this request");
}

}  // namespace weightfs::source
