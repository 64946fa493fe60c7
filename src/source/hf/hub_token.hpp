// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"

#include <sys/types.h>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace weightfs::source {

/// Who we are for the Hub: a token that was given, else what a file has now. The file is read again
/// whenever it has changed, so that a token can be replaced while the daemon runs. Thread-safe.
class HubToken {
 public:
  /// Both may be empty. Blanks around a token are dropped, as the Hub's own client does.
  HubToken(std::string token, std::filesystem::path file);

  /// nullopt where there is none. Error(kInvalid) for what cannot stand in a header, without
  /// showing it; kPermission, kIo for a file that is there and cannot be read.
  [[nodiscard]] std::optional<std::string> current();
  /// For messages: where the token is from. Never the token.
  [[nodiscard]] std::string origin() const;

 private:
  struct Seen {
    std::int64_t mtime_ns = 0;
    ino_t inode = 0;
    std::int64_t size = -1;
    std::string token;
  };

  const std::string given_;
  const std::filesystem::path file_;
  Synchronized<Seen> seen_;
};

}  // namespace weightfs::source
