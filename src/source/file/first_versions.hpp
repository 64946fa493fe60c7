// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/synchronized.hpp"

#include <sys/stat.h>
#include <map>
#include <optional>
#include <string>

namespace weightfs::source {

/// The versions that files were first seen in whose digest came with the listing and which
/// therefore have no validator: the digest has the last word, but a reader may have had bytes of
/// two versions by then. Thread-safe. Bounded.
class FirstVersions {
 public:
  /// Error(kChanged) if `object` (path and digest) was seen in another version since it was
  /// forgotten last; `status` is that of `fd`.
  void check(const std::string& object, const Fd& fd, const struct stat& status);
  void forget(const std::string& object);

 private:
  [[nodiscard]] std::optional<std::string> known(const std::string& object) const;

  Synchronized<std::map<std::string, std::string>> versions_;
};

}  // namespace weightfs::source
