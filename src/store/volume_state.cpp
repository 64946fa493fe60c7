// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/volume_state.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/filesystem.hpp"
#include "store/parts_file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace weightfs::store {

namespace {

namespace fs = std::filesystem;

void check_filesystem(const VolumeOptions& options, const Log& log) {
  const fs::path& directory = options.directory;
  const Filesystem filesystem = filesystem_of(directory);
  switch (filesystem.kind) {
    case FilesystemKind::kLocal:
      break;
    case FilesystemKind::kNetwork:
      if (options.allow_network_store) {
        log.warning("the store {} is on {}: reads of cached files go over it", directory.string(),
                    filesystem.name);
        break;
      }
      throw Error(Errc::kUnsupported,
                  fmt::format("the store {} is on {}, where a cache saves nothing; choose a local "
                              "disk or give --allow-network-store",
                              directory.string(), filesystem.name));
    case FilesystemKind::kMemory:
      log.warning("the store {} is on {}: it takes memory and is gone after a reboot",
                  directory.string(), filesystem.name);
      break;
    case FilesystemKind::kOverlay:
      log.warning("the store {} is on {}: no passthrough, reads go through the daemon",
                  directory.string(), filesystem.name);
      break;
  }
}

/// Nothing is written before the checks have passed; what may have changed since is checked again
/// under the lock.
ProcessLock take_directory(const Layout& layout, const VolumeOptions& options, const Log& log) {
  layout.create_directory();
  check_filesystem(options, log);
  layout.refuse_foreign();
  ProcessLock lock(layout.lock(), "the store");
  layout.refuse_foreign();
  layout.initialise();
  return lock;
}

}  // namespace

Volume::State::State(const VolumeOptions& options, const Clock& clock, Log log)
    : layout_(options.directory),
      boot_id_(options.boot_id),
      boot_(boot_id_.empty() ? 0 : boot_number(boot_id_)),
      clock_(clock),
      log_(std::move(log)),
      lock_(take_directory(layout_, options, log_)),
      filesystem_(device_of(layout_.directory())),
      root_(layout_.root()),
      health_(layout_.directory(), log_),
      files_(layout_),
      quarantine_(layout_.quarantine(), options.quarantine, clock_, log_),
      touches_(clock_) {
  open_index();
  find_partials();
}

Volume::State::~State() {
  try {
    if (const TouchBatch::Uses uses = touches_.take(); !uses.empty()) index_->set_last_used(uses);
  } catch (const Error& error) {
    log_.warning("the last uses of blobs are lost: {}", error.what());
  }
}

std::int64_t Volume::State::wall_seconds() const {
  return std::chrono::duration_cast<std::chrono::seconds>(clock_.wall().time_since_epoch()).count();
}

StoreUsage Volume::State::usage() const {
  // Numbers of another disk, or of none, would make somebody evict what is on this one.
  check_root();
  StoreUsage usage;
  try {
    const IndexTotals totals = index_->totals();
    usage.blobs = totals.blobs;
    usage.bytes = totals.bytes;
  } catch (const Error& error) {
    index_failed(error);
  }
  try {
    const Space space = space_of(layout_.directory());
    usage.capacity = space.capacity;
    usage.free = space.free;
    if (space.free == 0) {
      health_.found_full();
    } else {
      health_.found_room(space.free);
    }
  } catch (const Error& error) {
    health_.write_failed(error);
  }
  usage.partial_bytes = partials_.bytes();
  usage.evicted_open_bytes = open_blobs_.evicted_bytes();
  usage.quarantined = quarantine_.files();
  return usage;
}

void Volume::State::index_failed(const Error& error) const {
  if (!index_failure_told_.exchange(true)) {
    log_.error("{}; the store misses until the next start rebuilds it", error.what());
  }
}

std::optional<IndexRow> Volume::State::row(const Digest& digest) const {
  if (root_gone_) return std::nullopt;
  if (gone_.with([&](const auto& gone) { return gone.contains(digest); })) return std::nullopt;
  try {
    return index_->find(digest);
  } catch (const Error& error) {
    index_failed(error);
    return std::nullopt;
  }
}

bool Volume::State::verified_this_boot(const Digest& digest) const {
  const std::optional<IndexRow> known = row(digest);
  return known && boot_ != 0 && known->verified_boot == boot_;
}

Volume::State::Lookup Volume::State::open_row(const IndexRow& row) const {
  // Before the file is opened: see OpenBlobs::hold.
  auto hold = open_blobs_.hold(row.digest, row.identity.size);
  std::optional<BlobFiles::Opened> opened;
  try {
    opened = files_.open(row.digest);
  } catch (const Error& error) {
    if (error.code() != Errc::kInvalid && error.code() != Errc::kCorrupt) throw;
    return {.presence = Presence::kDiffers};
  }
  if (!opened) return {.presence = Presence::kMissing};
  if (opened->identity != row.identity) return {.presence = Presence::kDiffers};
  return {.presence = Presence::kIntact,
          .blob = Blob{.digest = row.digest,
                       .size = row.identity.size,
                       .fd = OpenBlobs::attach(std::move(hold), std::move(opened->fd))}};
}

Volume::State::Lookup Volume::State::find(const Digest& digest) {
  const std::optional<IndexRow> known = row(digest);
  if (!known) return {};
  Lookup lookup = open_row(*known);
  if (lookup.presence == Presence::kIntact) return lookup;
  // The row may be older than the file: look again while nobody changes either.
  const NameLocks::Turn turn(names_, digest);
  return heal(digest);
}

Volume::State::Lookup Volume::State::heal(const Digest& digest) {
  const std::optional<IndexRow> known = row(digest);
  if (!known) return {};
  Lookup lookup = open_row(*known);
  switch (lookup.presence) {
    case Presence::kIntact:
      break;
    case Presence::kMissing:
      if (!check_root()) break;
      log_.warning("the file of blob {} is gone; it will be fetched again", digest.hex());
      forget(digest);
      break;
    case Presence::kDiffers:
      drop(digest, "unreadable, or size, modification time or inode changed since it was verified");
      break;
  }
  return lookup;
}

void Volume::State::forget(const Digest& digest) {
  open_blobs_.evicted(digest);
  try {
    index_->remove(digest);
  } catch (const Error& error) {
    if (error.code() == Errc::kNoSpace) {
      health_.write_failed(error);
    } else {
      index_failed(error);
    }
    gone_.with([&](auto& gone) { gone.insert(digest); });
  }
}

void Volume::State::drop(const Digest& digest, const std::string& reason) {
  try {
    take_to_quarantine(digest, reason);
  } catch (const Error& error) {
    log_.error("blob {} counts as missing although its file stays: {}", digest.hex(), error.what());
    forget(digest);
  }
}

void Volume::State::take_to_quarantine(const Digest& digest, const std::string& reason) {
  take_away(digest, [&] {
    quarantine_.take(layout_.blob(digest), digest, reason);
    files_.remove_parts(digest);
    sync_directory(layout_.blob_folder(digest));
  });
}

void Volume::State::take_away(const Digest& digest, const std::function<void()>& file) {
  // A full disk must not keep what has to go: then the row stays published until the file is gone.
  const auto try_index = [&](auto change) {
    try {
      change();
    } catch (const Error& error) {
      health_.write_failed(error);
      log_.warning("blob {} goes without its row: {}", digest.hex(), error.what());
    }
  };
  try_index([&] { index_->begin_remove(digest); });
  try {
    file();
  } catch (const Error&) {
    try_index([&] { index_->end_publish(digest); });
    throw;
  }
  forget(digest);
}

Blob Volume::State::publish(const Digest& digest, const Staged& staged) {
  const NameLocks::Turn turn(names_, digest);
  if (Lookup existing = heal(digest); existing.presence == Presence::kIntact) {
    if (verified_this_boot(digest)) return *std::move(existing.blob);
    // Its size, time and inode are right, its bytes may have rotted; those that come were hashed
    // just now.
    take_away(digest, [&] { files_.remove(digest); });
  }
  const std::int64_t now = wall_seconds();
  const IndexRow row{.digest = digest,
                     .identity = staged.identity,
                     .created = now,
                     .last_used = now,
                     .verified_boot = boot_};
  // A flush more for each of many small files costs more than the few kilobytes that a power cut
  // may leave without a row, until they are fetched again.
  index_->begin_publish(row, row.identity.size <= kBlockSize ? Index::Durability::kLazy
                                                             : Index::Durability::kFlushed);
  try {
    files_.publish(digest, staged.data, staged.parts);
    index_->end_publish(digest);
    gone_.with([&](auto& gone) { gone.erase(digest); });
  } catch (const Error&) {
    files_.unpublish(digest, staged.data);
    forget(digest);
    throw;
  }
  Lookup published = open_row(row);
  if (!published.blob) {
    throw Error(Errc::kIo,
                fmt::format("the blob {} was changed while it was published", digest.hex()));
  }
  return *std::move(published.blob);
}

std::uint64_t Volume::State::remove(const Digest& digest) {
  const NameLocks::Turn turn(names_, digest);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(layout_.blob(digest), error);
  bool removed = false;
  take_away(digest, [&] {
    removed = files_.remove(digest);
    // Or else the row would go, and the file come back.
    if (!removed && !check_root()) {
      throw Error(Errc::kNotFound, layout_.directory().string() + " is gone");
    }
  });
  return removed && !error ? size : 0;
}

void Volume::State::quarantine_blob(const Digest& digest, const std::optional<Identity>& identity,
                                    const std::string& reason) {
  const NameLocks::Turn turn(names_, digest);
  const std::optional<BlobFiles::Opened> opened = files_.open(digest);
  if (!opened || (identity && opened->identity != *identity)) return;
  take_to_quarantine(digest, reason);
}

void Volume::State::mark_verified(const Digest& digest) {
  try {
    index_->set_verified(digest, boot_);
  } catch (const Error& error) {
    health_.write_failed(error);
    log_.warning("blob {} will be checked again: {}", digest.hex(), error.what());
  }
}

void Volume::State::touch(const Digest& digest) {
  const TouchBatch::Uses uses = touches_.add(digest, wall_seconds());
  if (uses.empty()) return;
  try {
    index_->set_last_used(uses);
  } catch (const Error& error) {
    health_.write_failed(error);
    log_.warning("{} uses of blobs are not recorded: {}", uses.size(), error.what());
  }
}

bool Volume::State::check_root() const {
  std::string found;
  try {
    found = layout_.root();
  } catch (const Error& error) {
    health_.write_failed(error);
  }
  const bool gone = found != root_;
  if (gone && !found.empty()) {
    health_.write_failed(Error(
        Errc::kNotFound, layout_.directory().string() + " is not the directory that was opened"));
  }
  root_gone_ = gone;
  return !gone;
}

bool Volume::State::was_replaced() const {
  std::error_code error;
  if (!fs::is_directory(layout_.directory(), error)) return false;
  try {
    // A copy of the whole filesystem has the same inodes.
    return device_of(layout_.directory()) != filesystem_ || layout_.root() != root_;
  } catch (const Error& missing) {
    return missing.code() == Errc::kNotFound;  // an empty one
  }
}

void Volume::State::probe() {
  if (layout_.root() != root_) {
    throw Error(Errc::kNotFound, layout_.directory().string() + " is another directory");
  }
  root_gone_ = false;
  const fs::path path = layout_.probe();
  const Fd file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  write_at(file, 0, std::as_bytes(std::span(std::string_view("probe\n"))));
  if (::fsync(file.value()) != 0) throw_errno(errno, "flush " + path.string());
  if (::unlink(path.c_str()) != 0) throw_errno(errno, "remove " + path.string());
  // Also where partial blobs are made.
  const fs::path folder = layout_.partials() / "probe.tmp";
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw_errno(errno, "create " + folder.string());
  }
  if (::rmdir(folder.c_str()) != 0) throw_errno(errno, "remove " + folder.string());
  health_.recovered();
}

void Volume::State::renew_parts(const Blob& blob, const std::vector<Midstate>& midstates) {
  const NameLocks::Turn turn(names_, blob.digest);
  const fs::path temporary = layout_.partials() / (blob.digest.hex() + ".tmp");
  try {
    if (!row(blob.digest)) return;
    write_parts(temporary, blob.digest, blob.size, midstates);
    fs::rename(temporary, layout_.parts(blob.digest));
  } catch (const std::exception& error) {
    log_.warning("the parts of blob {} could not be written: {}", blob.digest.hex(), error.what());
  }
}

}  // namespace weightfs::store
