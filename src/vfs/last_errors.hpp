// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>

namespace weightfs::vfs {

/// The sentence that ended the last fill of a content key, for `why` and `user.weightfs.error`.
/// Cleared when a fill succeeds. Bounded; thread-safe.
class LastErrors {
 public:
  static constexpr std::size_t kLimit = 4096;

  void set(const Digest& content_key, const std::string& sentence) {
    errors_.with([&](Errors& errors) {
      if (errors.size() >= kLimit) errors.clear();
      errors[content_key] = sentence;
    });
  }
  void clear(const Digest& content_key) {
    errors_.with([&](Errors& errors) { errors.erase(content_key); });
  }
  [[nodiscard]] std::optional<std::string> find(const Digest& content_key) const {
    return errors_.with([&](const Errors& errors) -> std::optional<std::string> {
      const auto found = errors.find(content_key);
      if (found == errors.end()) return std::nullopt;
      return found->second;
    });
  }

 private:
  using Errors = std::unordered_map<Digest, std::string>;
  Synchronized<Errors> errors_;
};

}  // namespace weightfs::vfs
