// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weightfs::store {

/// The names within a store directory (FORMAT.md), and the checks that it is one. Immutable, so
/// thread-safe.
class Layout {
 public:
  explicit Layout(std::filesystem::path directory) : directory_(std::move(directory)) {}

  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
  [[nodiscard]] std::filesystem::path version() const { return directory_ / "VERSION"; }
  [[nodiscard]] std::filesystem::path lock() const { return directory_ / "lock"; }
  [[nodiscard]] std::filesystem::path probe() const { return directory_ / "probe"; }
  [[nodiscard]] std::filesystem::path index() const { return directory_ / "index.db"; }
  [[nodiscard]] std::filesystem::path blobs() const { return directory_ / "blobs" / "sha256"; }
  [[nodiscard]] std::filesystem::path partials() const { return directory_ / "partial"; }
  [[nodiscard]] std::filesystem::path quarantine() const { return directory_ / "quarantine"; }

  /// blobs/sha256/ab: 256 folders keep each one small at a million blobs.
  [[nodiscard]] std::filesystem::path blob_folder(const Digest& digest) const;
  [[nodiscard]] std::filesystem::path blob(const Digest& digest) const;
  [[nodiscard]] std::filesystem::path parts(const Digest& digest) const;
  /// The folder of a partial blob.
  [[nodiscard]] std::filesystem::path partial(const Digest& key) const;

  /// Tells a store directory from a copy of it, in which every inode differs from the index: the
  /// copy of a folder has another inode number or, where chance has it, another time of birth.
  /// Throws Error.
  [[nodiscard]] std::string root() const;

  /// Creates the directory where it is missing. Error(kInvalid) where it is something else.
  void create_directory() const;
  /// Error(kInvalid) naming the foreign_entry(); at the root of a filesystem lost+found is none.
  /// Writes nothing.
  void refuse_foreign() const;
  /// Under the lock: writes VERSION and the folders where they are missing, removes leftovers of an
  /// interrupted write. Error(kUnsupported) for a VERSION that is not this build's.
  void initialise() const;

 private:
  std::filesystem::path directory_;
};

/// Of the names in a directory, the first (in byte order) that does not belong into a store.
/// Without a VERSION nothing but a lock does: other caches have a folder "blobs", too. Pure.
[[nodiscard]] std::optional<std::string> foreign_entry(std::span<const std::string> names);

/// The digest that a file name of 64 lower-case hexadecimal digits stands for.
[[nodiscard]] std::optional<Digest> digest_of_name(std::string_view name);

}  // namespace weightfs::store
