// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "net/http_client.hpp"

#include <chrono>
#include <map>
#include <string>

namespace weightfs::source {

/// Notices that an object was replaced while it is being read, where its listing gave a digest and
/// therefore no validator.
///
/// The digest has the last word: the nodes of a CDN often give different ETags, and different
/// dates, to the same bytes, so a difference alone is nothing. But an object that looks different
/// from the first answer *and* was modified after the moment of that answer has been replaced under
/// way; saying so at once is better than a digest that does not match at the end. The first answer
/// is that since forget(): a fill that begins with nothing may take what it finds. Thread-safe.
/// Bounded, in objects and in what is kept of each.
class FirstAnswers {
 public:
  /// Error(kChanged) as above. `object` names path and digest.
  void check(const std::string& object, const net::ResponseHead& head);
  void forget(const std::string& object);

 private:
  struct First {
    Digest look;                    ///< of ETag and Last-Modified, which may be long
    std::chrono::sys_seconds date;  ///< by the server's clock
  };
  Synchronized<std::map<std::string, First>> first_;
};

}  // namespace weightfs::source
