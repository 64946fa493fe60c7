// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/filesystem.hpp"

#include "base/file.hpp"

#include <algorithm>

namespace weightfs::vfs {

namespace {

// The kernel asks for at most this much at once (fs.fuse.max_pages_limit can raise it).
constexpr std::uint64_t kMaxRead = 16ULL << 20;

std::span<std::byte> read_buffer(std::uint64_t size) {
  // One buffer per serving thread, as large as its largest read so far.
  thread_local std::vector<std::byte> buffer;
  if (buffer.size() < size) buffer.resize(size);
  return std::span(buffer).first(size);
}

// Answers with what `read` puts into a buffer, or with the error that it throws.
template <class Read>
void answer(std::uint64_t size, const fetch::ReadDone& done, const Read& read) {
  try {
    const auto buffer = read_buffer(size);
    done({buffer.first(read(buffer)), std::nullopt});
  } catch (const Error& error) {
    done({{}, error});
  }
}

}  // namespace

Filesystem::Filesystem(const Parts& parts)
    : catalog_(parts.catalog),
      store_(parts.store),
      fetcher_(parts.fetcher),
      sources_(parts.sources),
      dentries_(parts.dentries),
      incarnations_(parts.incarnations),
      last_errors_(parts.last_errors),
      checks_(parts.checks),
      places_(parts.catalog, parts.log) {
}

LookupResult Filesystem::lookup(NodeId parent, const std::string& name) {
  ledger_.lookup();
  const Place directory = places_.at(parent);
  const auto place = places_.child(directory, name);
  if (!place) {
    return {std::nullopt, directory.is_view() ? Lifetime::kForever : Lifetime::kNone};
  }
  if (place->file() != nullptr) dentries_.remember(target(*place).key(), parent, name);
  return {entry(*place), Lifetime::kNone};
}

Entry Filesystem::attributes(NodeId node) {
  Entry found = entry(places_.at(node));
  found.node = node;
  return found;
}

void Filesystem::list(NodeId directory, std::uint64_t position, const Visitor& visitor) {
  const Place place = places_.at(directory);
  const std::vector<std::string> names = places_.names(place);
  for (; position < names.size(); ++position) {
    const auto child = places_.child(place, names[position]);
    if (!child) continue;  // removed since the names were read
    if (child->file() != nullptr) {
      dentries_.remember(target(*child).key(), directory, names[position]);
    }
    if (!visitor(names[position], entry(*child), position + 1)) return;
  }
}

Lifetime Filesystem::listing_lifetime(NodeId directory) {
  return places_.at(directory).is_view() ? Lifetime::kForever : Lifetime::kNone;
}

Ticket Filesystem::open(NodeId node, const std::string& consumer, OpenDone done) {
  const Place place = places_.at(node);
  if (place.file() == nullptr) throw Error(Errc::kInvalid, "open of a directory");
  check_current(node, place);
  const fetch::Target wanted = target(place);
  const Backing backing = open_files_.acquire(node, [&] { return this->backing(node, wanted); });

  if (const auto* blob = std::get_if<store::Blob>(&backing)) {
    ledger_.open_complete(consumer, place.inode(), blob->size);
    done({std::nullopt, *blob});
    return {};
  }
  if (const auto* unchecked = std::get_if<UncheckedBlobPtr>(&backing)) {
    ledger_.open_complete(consumer, place.inode(), (*unchecked)->blob().size);
    done({});
    return {};
  }
  const fetch::FillPtr& fill = std::get<fetch::FillPtr>(backing);
  const fetch::FillProgress progress = fill->progress();
  if (progress.state == fetch::FillState::kComplete) {
    ledger_.open_complete(consumer, place.inode(), progress.size);
  } else {
    ledger_.open_incomplete();
  }
  const bool has_something = progress.written > 0 || progress.size == 0;
  if (has_something && progress.state != fetch::FillState::kFailed) {
    done({});
    return {};
  }
  const std::uint64_t first = std::min(progress.size, store::kBlockSize);
  const auto id = fill->read(0, first, [this, node, done = std::move(done)](const auto& result) {
    if (result.error) release(node);
    done({result.error, std::nullopt});
  });
  return {fill, id};
}

void Filesystem::release(NodeId node) {
  open_files_.release(node);
}

Ticket Filesystem::read(NodeId node, std::uint64_t offset, std::uint64_t size,
                        fetch::ReadDone done) {
  const Place place = places_.at(node);
  const snapshot::File* file = place.file();
  if (file == nullptr) throw Error(Errc::kInvalid, "read of a directory");
  size = std::min({size, kMaxRead, file->size - std::min(offset, file->size)});
  ledger_.read(size);
  if (size == 0) {
    done({});
    return {};
  }
  const fetch::Target wanted = target(place);
  const Backing backing = open_files_.find(node, [&] { return this->backing(node, wanted); });
  if (const auto* blob = std::get_if<store::Blob>(&backing)) {
    answer(size, done, [&](auto buffer) { return read_at(*blob->fd, offset, buffer); });
    return {};
  }
  if (const auto* unchecked = std::get_if<UncheckedBlobPtr>(&backing)) {
    answer(size, done, [&](auto buffer) { return (*unchecked)->read(offset, buffer); });
    return {};
  }
  const fetch::FillPtr& fill = std::get<fetch::FillPtr>(backing);
  const auto id = fill->read(offset, size, std::move(done));
  return {fill, id};
}

FilesystemUsage Filesystem::usage() const {
  const store::StoreUsage usage = store_.usage();
  return {.capacity = usage.capacity, .free = usage.free, .files = usage.blobs};
}

std::optional<NodeId> Filesystem::node_of(std::string_view directory) {
  const auto place = places_.walk(directory);
  if (!place) return std::nullopt;
  return entry(*place).node;
}

fetch::Target Filesystem::target(const Place& file) const {
  return {file.snapshot, *file.node().file, sources_.get(file.snapshot->source())};
}

Entry Filesystem::entry(const Place& place) {
  if (place.file() != nullptr) return file_entry(place);
  Entry found;
  found.node = NodeId(place.number, place.index, 0, true);
  found.attributes.kind = Kind::kDirectory;
  found.attributes.inode = place.inode();
  if (place.is_view()) {
    found.attributes.mtime = place.node().mtime;
    // Where a name leads can change; what lies below a revision cannot.
    found.lifetime = place.index == 0 ? Lifetime::kNone : Lifetime::kForever;
  }
  return found;
}

Entry Filesystem::file_entry(const Place& place) {
  const snapshot::File& file = *place.file();
  const fetch::Target wanted = target(place);
  const Residence here = residence(wanted);
  const bool twin = here.complete && passthrough_ == Passthrough::kActive;
  Entry found;
  found.node = NodeId(place.number, place.index, incarnation(wanted), twin);
  found.attributes = {.kind = Kind::kFile,
                      .inode = place.inode(),
                      .size = file.size,
                      .resident = here.bytes,
                      .mtime = file.mtime,
                      .executable = file.executable};
  found.lifetime = here.complete ? Lifetime::kForever : Lifetime::kShort;
  return found;
}

Filesystem::Residence Filesystem::residence(const fetch::Target& target) const {
  const snapshot::File& file = target.file();
  if (fetcher_.keep() == fetch::Keep::kMemoryOnly) return {};
  if (file.sha256 && store_.contains(*file.sha256)) {
    return {checks_.trusted(*file.sha256), file.size};
  }
  return {false, fetcher_.resident_bytes(target)};
}

std::uint32_t Filesystem::incarnation(const fetch::Target& target) const {
  return target.file().sha256 ? incarnations_.sum(target.key(), target.unlearned_key())
                              : incarnations_.sum(target.key());
}

void Filesystem::check_current(NodeId node, const Place& place) const {
  const std::uint32_t current = incarnation(target(place));
  if (current > NodeId::kMaxIncarnation) {
    // There are no node ids left without poisoned pages; the next mount has new ones.
    throw Error(Errc::kCorrupt, "the bytes of this file were wrong too often");
  }
  if (node.incarnation() != current) {
    throw Error(Errc::kChanged, "the pages of this node may be wrong");
  }
}

Backing Filesystem::backing(NodeId node, const fetch::Target& target) {
  if (auto local = local_backing(target)) return *std::move(local);
  if (node.complete()) throw Error(Errc::kChanged, "the blob of a complete node is gone");
  return fetcher_.fill(target);
}

std::optional<Backing> Filesystem::local_backing(const fetch::Target& target) {
  const auto& digest = target.file().sha256;
  if (!digest || fetcher_.keep() != fetch::Keep::kStore || !store_.contains(*digest)) {
    return std::nullopt;
  }
  if (auto blob = store_.find(*digest)) {
    if (checks_.trusted(*digest)) return *std::move(blob);
    if (auto unchecked = checks_.check(*blob)) return unchecked;
  }
  // It was there and was not what its name says.
  blob_damaged(*digest);
  throw Error(Errc::kChanged, "the blob was damaged on disk");
}

void Filesystem::blob_damaged(const Digest& digest) {
  incarnations_.retire(digest);
  dentries_.invalidate(digest);
}

}  // namespace weightfs::vfs
