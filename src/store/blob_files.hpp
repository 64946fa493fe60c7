// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/log.hpp"
#include "digest/digest.hpp"
#include "store/identity.hpp"
#include "store/layout.hpp"

#include <filesystem>
#include <functional>
#include <optional>

namespace weightfs::store {

/// What stands under blobs/, without any opinion of the index. `layout` must outlive it.
/// Thread-safe; changes to one name are the caller's to serialise.
class BlobFiles {
 public:
  explicit BlobFiles(const Layout& layout) : layout_(layout) {}

  struct Opened {
    Fd fd;  ///< O_RDONLY
    Identity identity;
  };
  /// nullopt where there is no such file. Error: kInvalid where it is no regular file; kCorrupt
  /// where it is unreadable (unreadable.hpp); kIo for what is no fault of the file.
  [[nodiscard]] std::optional<Opened> open(const Digest& digest) const;

  /// Moves a synced file into place, with its `.parts` first (empty path: it has none), and makes
  /// the names durable. Throws Error; unpublish() then undoes what was done.
  void publish(const Digest& digest, const std::filesystem::path& data,
               const std::filesystem::path& parts) const;
  /// Moves the file back to `data`, if it came from there, and removes the parts. Best effort: a
  /// file that will not move is removed, because nothing may stand under blobs/ without a row.
  void unpublish(const Digest& digest, const std::filesystem::path& data) const noexcept;

  /// Unlinks a blob and its parts and makes that durable. False if there was no such blob.
  bool remove(const Digest& digest) const;
  /// The same for the parts alone, and not durable.
  void remove_parts(const Digest& digest) const;

  struct Found {
    Digest digest;
    Identity identity;
    bool has_parts = false;
  };
  /// Calls `found` for every blob, in the order of their digests: so rows are appended to the index
  /// rather than scattered over it. Parts without a blob are removed; names that are not ours are
  /// left alone and reported to `log`, and so is what cannot be read. Throws Error.
  void scan(const std::function<void(const Found&)>& found, const Log& log) const;

 private:
  void scan_folder(const std::filesystem::path& folder,
                   const std::function<void(const Found&)>& found, const Log& log) const;

  const Layout& layout_;
};

}  // namespace weightfs::store
