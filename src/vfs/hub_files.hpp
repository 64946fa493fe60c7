// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/snapshot.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::vfs {

/// The files of one commit as the Hub's own cache calls them. A file in LFS has the sha256 of its
/// content for an etag, one in git the id of git's blob: what the Hub sends as its ETag.
///
/// Immutable, so thread-safe.
class HubFiles {
 public:
  explicit HubFiles(const snapshot::Snapshot& snapshot);

  /// Whether all that the layout needs is known: every file's sha256 and git's id. False for what
  /// somebody listed by hand; nothing else may be asked then.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

  /// Of one of the snapshot's files, by its index there.
  [[nodiscard]] const std::string& etag(std::size_t file) const { return etags_.at(file); }
  /// The first file with this content.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view etag) const;
  /// One file for each etag, sorted by etag.
  [[nodiscard]] const std::vector<std::uint32_t>& by_etag() const noexcept { return by_etag_; }

  /// Bytes of tree_text().
  [[nodiscard]] std::uint64_t tree_size() const noexcept { return tree_size_; }

 private:
  std::vector<std::string> etags_;
  std::vector<std::uint32_t> by_etag_;
  std::uint64_t tree_size_ = 0;
  bool complete_ = false;
};

/// trees/<commit>.json: what snapshot_download goes by when it must not ask the Hub
/// (huggingface_hub/_tree_cache.py; since its release 1.22). Only for complete() HubFiles. Pure.
[[nodiscard]] std::string tree_text(const snapshot::Snapshot& snapshot, const HubFiles& files);

/// What a link in snapshots/<commit>/ to the content of this file says. Pure.
[[nodiscard]] std::string link_target(std::string_view path, std::string_view etag);

/// Files that loaders ask for and most repositories do not have. Where their absence is on record,
/// nobody asks the Hub again. Sorted.
[[nodiscard]] std::vector<std::string> absent_files(const snapshot::Snapshot& snapshot);

}  // namespace weightfs::vfs
