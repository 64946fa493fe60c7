// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"
#include "net/ranged_origin.hpp"
#include "source/collecting_sink.hpp"
#include "source/http/http_source.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace weightfs::test {

inline const std::string kDate = "Sun, 06 Nov 1994 08:49:37 GMT";
inline constexpr std::int64_t kDateSeconds = 784'111'777;

/// An origin, a client, and the source of one reference. What a fault refers to must be declared
/// before it: the origin's threads live as long as it does.
struct Site {
  explicit Site(const std::string& path, RangedOrigin::Objects objects = {},
                std::chrono::milliseconds stall_timeout = std::chrono::seconds(20))
      : origin(std::move(objects)),
        http({.stall_timeout = stall_timeout}),
        source(snapshot::Reference::parse(origin.url(path)), http) {}

  [[nodiscard]] std::string read(const snapshot::File& file, ByteRange range) {
    CollectingSink sink(range.begin);
    source.read(file, range, sink, {});
    return sink.gap ? "a gap" : sink.bytes;
  }

  RangedOrigin origin;
  net::HttpClient http;
  source::HttpSource source;
};

inline snapshot::File known_file(const std::string& path, const std::string& content) {
  return {.path = path, .size = content.size(), .sha256 = Digest::of(content)};
}

}  // namespace weightfs::test
