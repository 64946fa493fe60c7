// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "digest/sha256.hpp"
#include "store/store.hpp"
#include "store/volume.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::store {

/// A directory of its own for one test; removed at the end.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(
      const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

/// Time that stands still until it is told to move.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return now_; }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override {
    return wall_;
  }
  void advance(std::chrono::seconds by) {
    now_ += by;
    wall_ += by;
  }

 private:
  TimePoint now_{};
  std::chrono::system_clock::time_point wall_{std::chrono::seconds(1'700'000'000)};
};

/// Bytes that differ from place to place, the same for each seed.
[[nodiscard]] std::string random_bytes(std::size_t size, std::uint64_t seed);

/// The digest of `content` and its midstates at the part boundaries before the end.
struct Hashed {
  Digest digest;
  std::vector<Midstate> midstates;
};
[[nodiscard]] Hashed hash(std::string_view content);

/// Writes all of `content` into the partial blob and marks it.
void fill(PartialBlob& partial, std::string_view content);
/// Puts a blob into the store the way a fill does.
Blob put(Volume& volume, std::string_view content);
Blob put(Store& store, std::string_view content);
[[nodiscard]] std::string content_of(const Blob& blob);

/// A store of one directory.
[[nodiscard]] std::unique_ptr<Store> open_store(const std::filesystem::path& directory,
                                                const Clock& clock);
[[nodiscard]] std::unique_ptr<Volume> open_volume(const std::filesystem::path& directory,
                                                  const Clock& clock,
                                                  const std::string& boot_id = "boot-1");

/// Where the store keeps things; the tests look there as a person would.
[[nodiscard]] std::filesystem::path blob_path(const std::filesystem::path& directory,
                                              const Digest& digest);
[[nodiscard]] std::filesystem::path parts_path(const std::filesystem::path& directory,
                                               const Digest& digest);
[[nodiscard]] std::filesystem::path partial_path(const std::filesystem::path& directory,
                                                 const Digest& key);
void write_text(const std::filesystem::path& path, std::string_view text);
[[nodiscard]] std::string read_text(const std::filesystem::path& path);
/// Changes one byte of a file and nothing of its size, mtime and inode: what a bad sector does.
void flip_byte(const std::filesystem::path& path, std::uint64_t offset);
/// Makes opening `path` work and reading it fail with EIO, as with a bad sector.
void make_unreadable(const std::filesystem::path& path);
[[nodiscard]] std::size_t entries_in(const std::filesystem::path& directory);

}  // namespace weightfs::store
