// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/fd.hpp"
#include "digest/digest.hpp"
#include "io/reader_pool.hpp"

#include <sys/stat.h>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace weightfs::source {

/// A directory of this machine in which files may lie that some source has as well: a cache of
/// another program, a tree that was copied. Nobody vouches for it, so nothing leads out of it: all
/// files are opened below one directory (openat2(2), RESOLVE_BENEATH), which is the one that was
/// named or, for a snapshot within a Hub cache, the folder of its repository, where its links lead.
///
/// Thread-safe.
class LocalTree {
 public:
  struct File {
    std::string path;  ///< below the directory within which files are opened
    std::uint64_t size = 0;
    std::string version;            ///< as version_of
    std::optional<Digest> claimed;  ///< what its name says: <64 hex>, sha256-<64 hex>
    bool operator==(const File&) const = default;
  };
  struct Unreadable {
    std::string path;  ///< likewise
    Error error;
  };
  struct Listing {
    std::vector<File>
        files;  ///< of a size that is looked for; each once, however many names it has
    std::uint64_t others = 0;  ///< files of other sizes
    std::uint64_t other_bytes = 0;
    std::uint64_t passed_over = 0;  ///< links out of it, or to nowhere; devices, sockets, FIFOs
    std::vector<Unreadable> unreadable;  ///< directories
  };
  struct Search {
    std::function<bool(std::uint64_t size)> is_wanted;
    /// Directories that are not entered.
    std::function<bool(const struct stat& directory)> is_spared;
  };

  /// Error kNotFound, kPermission; kInvalid where it is no directory; kUnsupported on a kernel
  /// without openat2 (before 5.6).
  explicit LocalTree(const std::string& directory);

  /// All files below the directory that was named, hidden ones included. Links to files are
  /// followed, those to directories are not: what they lead to within it is found anyway. Error:
  /// kInvalid more than 128 levels, or more than kMostEntries names; kCancelled.
  static constexpr std::uint64_t kMostEntries = 2'000'000;
  [[nodiscard]] Listing list(const Search& search, const std::stop_token& stop) const;

  /// For reading, an open file of its own. Error(kChanged) if it is not the version that was
  /// listed; kPermission, kNotFound, kIo.
  [[nodiscard]] Fd open(const File& file) const;
  /// Error(kChanged) if the open file is not that version any more.
  static void check_version(const File& file, const Fd& fd);

  /// For messages.
  [[nodiscard]] std::string full_path(const std::string& path) const;
  [[nodiscard]] io::ReaderPool& readers() noexcept { return readers_; }

 private:
  friend class LocalTreeWalk;

  std::string top_;    ///< absolute: within which files are opened
  std::string start_;  ///< from there to the directory that was named; empty: itself
  Fd fd_;              ///< of top_
  io::ReaderPool readers_;
};

/// What a file's name says about its content, if anything. Pure.
[[nodiscard]] std::optional<Digest> claimed_digest(std::string_view path);

}  // namespace weightfs::source
