// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// What State does once, at open: bring index and partial blobs in line with the files.
#include "base/error.hpp"
#include "base/file.hpp"
#include "store/block_map.hpp"
#include "store/parts_file.hpp"
#include "store/volume_state.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <system_error>
#include <vector>

namespace weightfs::store {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRowsPerTransaction = 4096;

/// Whether `.parts` is there, whole, and gives the blob another size.
bool contradicts_parts(const Layout& layout, const BlobFiles::Found& found) {
  if (!found.has_parts) return false;
  const std::optional<PartsFile> parts = read_parts(layout.parts(found.digest));
  return parts && parts->digest == found.digest && parts->size != found.identity.size;
}

}  // namespace

void Volume::State::open_index() {
  if (lock_.taken_over()) Index::leave_locks_behind(layout_.index());
  index_ = Index::open(layout_.index(), root_);
  if (!index_) {
    rebuild_index();
    return;
  }
  for (const IndexRow& row : index_->unpublished()) settle(row);
}

void Volume::State::rebuild_index() {
  index_ = Index::create(layout_.index(), root_);
  std::vector<IndexRow> rows;
  std::vector<Digest> wrong_size;
  std::size_t count = 0;
  const auto flush = [&] {
    index_->add_found(rows);
    count += rows.size();
    rows.clear();
  };
  files_.scan(
      [&](const BlobFiles::Found& found) {
        if (contradicts_parts(layout_, found)) {
          wrong_size.push_back(found.digest);
          return;
        }
        const std::int64_t modified = found.identity.mtime_ns / 1'000'000'000;
        rows.push_back({.digest = found.digest,
                        .identity = found.identity,
                        .created = modified,
                        .last_used = modified,
                        .verified_boot = 0});
        if (rows.size() == kRowsPerTransaction) flush();
      },
      log_);
  flush();
  for (const Digest& digest : wrong_size) {
    drop(digest, "found with another size than its parts say");
  }
  index_->finish_rebuild();
  if (count > 0) log_.info("the index was rebuilt from {} blobs", count);
}

void Volume::State::settle(const IndexRow& unpublished) {
  switch (open_row(unpublished).presence) {
    case Presence::kIntact:
      index_->end_publish(unpublished.digest);
      break;
    case Presence::kMissing:
      index_->remove(unpublished.digest);
      break;
    case Presence::kDiffers:
      drop(unpublished.digest, "unreadable, or another file than the one that was being published");
      break;
  }
}

void Volume::State::find_partials() {
  std::error_code error;
  std::vector<fs::path> useless;
  for (fs::directory_iterator entry(layout_.partials(), error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string name = path.filename().string();
    const std::optional<Digest> key = digest_of_name(name);
    if (!key) {
      if (name.ends_with(".tmp")) {
        useless.push_back(path);
      } else {
        log_.warning("{} is not ours and is left alone", path.string());
      }
      continue;
    }
    const auto summary =
        BlockMap::peek({.path = path / "map", .key = *key, .size = 0, .boot_id = boot_id_});
    struct stat data{};
    if (summary && ::stat((path / "data").c_str(), &data) == 0 &&
        static_cast<std::uint64_t>(data.st_size) == summary->size) {
      partials_.add(*key, summary->size);
    } else {
      useless.push_back(path);
    }
  }
  if (error) throw_errno(error.value(), "list " + layout_.partials().string());
  for (const fs::path& path : useless) fs::remove_all(path, error);
}

}  // namespace weightfs::store
