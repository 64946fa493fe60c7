// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"
#include "snapshot/file.hpp"
#include "snapshot/file_list.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::snapshot {

/// Directories of a snapshot. A tree of real files has fewer of them than of files; a listing that
/// has more is made to take memory.
inline constexpr std::size_t kMaxDirectories = 1'000'000;

/// A digest that a listing did not have. The index is into the snapshot's files.
struct LearnedDigest {
  std::size_t file_index = 0;
  Digest sha256;
};

/// One revision's tree of files. An immutable value; share it as `SnapshotPtr`.
///
/// Two digests name it. Both are the sha256 over one line per file in path order (FORMAT.md):
///   id   over path, size, executable bit and sha256: the same on every node. Only a snapshot whose
///        files all have a sha256 has one; until then it is *provisional*.
///   key  the same with source and validator in place of each sha256 that was unknown when the
///        reference was resolved (a validator means something at its source only). It never changes
///        while digests are learned, so trees, inode numbers and state files go by it. Where
///        nothing was unknown, key == id.
class Snapshot {
 public:
  /// Sorts the files and checks them: every path valid, no duplicates, no path that is both a file
  /// and a directory, at most kMaxDirectories of those, every size and their sum at most
  /// kMaxFileSize; throws Error(kInvalid).
  /// `source` is the reference it came from, as a person wrote it.
  Snapshot(std::string source, std::string revision, std::vector<File> files);

  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  /// What the source calls this revision: a commit, a manifest digest; the key's hex where it has
  /// none.
  [[nodiscard]] const std::string& revision() const noexcept { return revision_; }
  /// Sorted by path, bytewise. An index into it is stable for the life of the key.
  [[nodiscard]] const FileList& files() const noexcept { return files_; }
  [[nodiscard]] const File* find(std::string_view path) const noexcept;
  [[nodiscard]] std::optional<std::size_t> index_of(std::string_view path) const noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  [[nodiscard]] const Digest& key() const noexcept { return key_; }
  [[nodiscard]] const std::optional<Digest>& id() const noexcept { return id_; }
  [[nodiscard]] bool provisional() const noexcept { return !id_; }

  /// The same snapshot with the digest of one file learned; key() stays, and all but some hundred
  /// files are shared with it. Error(kCorrupt) if the file is known to have another; kInvalid if
  /// there is no such file.
  [[nodiscard]] Snapshot with_digest(std::size_t file_index, const Digest& sha256) const;
  /// The same for many at the cost of one.
  [[nodiscard]] Snapshot with_digests(std::span<const LearnedDigest> learned) const;

  /// The state file (FORMAT.md): JSON, round-trips every byte.
  [[nodiscard]] std::string to_json() const;
  /// Error: kUnsupported a version that is not ours; kCorrupt a key that its files do not have;
  /// kInvalid everything else.
  [[nodiscard]] static Snapshot from_json(std::string_view json);

 private:
  [[nodiscard]] std::optional<Digest> compute_id() const;

  std::string source_;
  std::string revision_;
  FileList files_;
  /// By index into files_: sha256 came later, so key_ goes by the validator.
  std::vector<bool> learned_;
  /// Files whose sha256 is still to be learned.
  std::size_t unknown_ = 0;
  std::uint64_t bytes_ = 0;
  Digest key_;
  std::optional<Digest> id_;
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

}  // namespace weightfs::snapshot
