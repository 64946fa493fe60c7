// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"

#include <sys/types.h>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace weightfs::source {

/// Which content a file has, as far as stat(2) tells: other content, another mark. A value; empty
/// for a file that is not there.
struct FileMark {
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  ino_t inode = 0;
  std::int64_t size = -1;

  /// Error kPermission, kIo.
  [[nodiscard]] static FileMark of(const std::filesystem::path& file);
  [[nodiscard]] bool exists() const noexcept { return size >= 0; }
  [[nodiscard]] std::string text() const;
  auto operator<=>(const FileMark&) const = default;
};

/// A small file with secrets, which is read again whenever it has changed; one stat(2) where it has
/// not. Thread-safe.
class SecretFile {
 public:
  struct Content {
    std::string text;
    bool others_may_read = false;
  };
  using ContentPtr = std::shared_ptr<const Content>;

  explicit SecretFile(std::filesystem::path path);

  /// Null where there is none. Error kPermission for one that everybody may write, or that we may
  /// not read; kIo; kInvalid for one that is too long to hold a secret.
  [[nodiscard]] ContentPtr content();
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  struct Seen {
    FileMark mark;
    ContentPtr content;
  };

  const std::filesystem::path path_;
  Synchronized<Seen> seen_;
};

/// Without the blanks around it, as every client takes a token from a file.
[[nodiscard]] std::string trimmed(std::string text);

}  // namespace weightfs::source
