// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "store/identity.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weightfs::store {

/// What is known of a blob without opening it. A value.
struct IndexRow {
  Digest digest;
  Identity identity;
  std::int64_t created = 0;        ///< seconds since 1970
  std::int64_t last_used = 0;      ///< seconds since 1970
  std::int64_t verified_boot = 0;  ///< boot_number() of the boot that last checked it; 0 never
};

struct IndexTotals {
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;
};

/// The only user of SQLite: a table over the files under blobs/, which it can always be rebuilt
/// from. Nothing of it is kept in memory but SQLite's page cache, so that a million blobs cost no
/// more than one; opening reads a few pages.
///
/// File and row cannot change in one step, so a blob is published in three: its row, unpublished
/// and durable; the rename; the row's flag. It goes in the opposite order: flag, file, row. A crash
/// between them leaves an unpublished row, which the next open settles by looking at one file.
/// Nowhere does it leave a file without a row, which only a scan could find. (A power cut may undo
/// the last flags, which are not flushed: then a row without a file stays until somebody asks for
/// that blob. And it may take rows that were published lazily.)
///
/// Thread-safe: one connection for reads, which never wait for a flush, and one for writes. Errors
/// of the disk: kNoSpace, kIo. IndexDamaged, after which the file is gone and the next open
/// rebuilds.
class Index {
 public:
  /// Puts copies in the place of the files, as they are: a dead process that cannot let go of its
  /// locks on them keeps the old ones. Where that fails they are removed, and open() gives nothing.
  static void leave_locks_behind(const std::filesystem::path& path);

  /// Null where there is none, or none that is whole, of this version and of this directory (`root`
  /// says which; a store that was copied has other inodes). Throws Error for what the disk says.
  [[nodiscard]] static std::unique_ptr<Index> open(const std::filesystem::path& path,
                                                   std::string_view root);
  /// A new one in place of whatever is there. Not whole until finish_rebuild().
  [[nodiscard]] static std::unique_ptr<Index> create(const std::filesystem::path& path,
                                                     std::string_view root);
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;
  ~Index();

  void add_found(std::span<const IndexRow> rows);
  void finish_rebuild();

  /// Published rows only.
  [[nodiscard]] std::optional<IndexRow> find(const Digest& digest) const;
  [[nodiscard]] IndexTotals totals() const;
  /// In byte order, from the first after `after`; at most `limit`.
  [[nodiscard]] std::vector<Digest> list(const std::optional<Digest>& after,
                                         std::size_t limit) const;

  /// What a power cut may do to the row that is about to be published.
  enum class Durability {
    kFlushed,  ///< nothing: it is on disk when begin_publish() returns
    kLazy,     ///< take it, so that the file stands without a row until it is published again
  };
  /// Replaces a row of this digest.
  void begin_publish(const IndexRow& row, Durability durability);
  void end_publish(const Digest& digest);
  [[nodiscard]] std::vector<IndexRow> unpublished() const;

  /// The blob is about to go; end_publish() takes that back, remove() completes it.
  void begin_remove(const Digest& digest);
  void remove(const Digest& digest);
  void set_verified(const Digest& digest, std::int64_t boot_number);
  void set_last_used(std::span<const std::pair<Digest, std::int64_t>> uses);

 private:
  struct Reader;
  struct Writer;

  enum class Opening { kExisting, kNew };
  Index(const std::filesystem::path& path, std::string_view root, Opening opening);

  void set_published(const Digest& digest, std::int64_t published);
  template <class F>
  auto guarded(F&& body) const;

  const std::filesystem::path path_;
  Synchronized<std::unique_ptr<Writer>> writer_;
  Synchronized<std::unique_ptr<Reader>> reader_;
};

/// A boot id as the index keeps it: never 0.
[[nodiscard]] std::int64_t boot_number(std::string_view boot_id);

}  // namespace weightfs::store
