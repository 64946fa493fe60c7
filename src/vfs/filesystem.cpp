// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/filesystem.hpp"

#include "base/file.hpp"
#include "fetch/read_buffer.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <variant>

namespace weightfs::vfs {

namespace {

// A bound for the buffer; fuse/ asks the kernel for 1 MiB at most.
constexpr std::uint64_t kMaxRead = 16ULL << 20;

// Answers with the `size` bytes that `read` puts into a buffer, or with the error that it throws.
// What lies within the file's size is there: fewer bytes would be taken for its end.
template <class Read>
void answer(std::uint64_t size, const fetch::ReadDone& done, const Read& read) {
  try {
    fetch::ReadBuffer buffer(size);
    if (read(buffer.bytes()) < size) throw Error(Errc::kIo, "the blob is shorter than its size");
    done({buffer.bytes(), std::nullopt});
  } catch (const Error& error) {
    done({{}, error});
  }
}

// Whether the source gave bytes to this fill, or need not give any. What an earlier fill left says
// nothing about the source: it may be gone for good.
bool heard_from_source(const fetch::FillProgress& progress) {
  return progress.received > 0 || progress.written == progress.size;
}

}  // namespace

Filesystem::Filesystem(const Parts& parts)
    : catalog_(parts.catalog),
      store_(parts.store),
      cache_(parts.cache),
      fetcher_(parts.fetcher),
      sources_(parts.sources),
      invalidator_(parts.invalidator),
      incarnations_(parts.incarnations),
      last_errors_(parts.last_errors),
      checks_(parts.checks),
      places_(parts.catalog, parts.log),
      // Where nothing is kept, a fill lasts for as long as its file is open.
      loads_(parts.clock,
             [this](NodeId node) {
               return fetcher_.keep() == fetch::Keep::kStore && open_files_.filling(node);
             }),
      uses_(parts.clock),
      events_(parts.events) {
}

LookupResult Filesystem::lookup(NodeId parent, const std::string& name) {
  ledger_.lookup();
  const Place directory = places_.at(parent);
  const auto place = places_.child(directory, name);
  if (!place) {
    return {std::nullopt, directory.is_revision() ? Lifetime::kForever : Lifetime::kNone};
  }
  return {entry_in(directory, *place), Lifetime::kNone};
}

Entry Filesystem::attributes(NodeId node) {
  const PlacePtr place = place_of(node);
  Entry found = entry(*place);
  const bool other = found.node != node;  // the kernel holds a node that is no longer current
  found.node = node;
  if (other && found.attributes_lifetime == Lifetime::kForever && place->file() != nullptr) {
    complete_nodes_.remember(*place->file()->sha256, node);
  }
  return found;
}

void Filesystem::list(NodeId directory, std::uint64_t position, const Visitor& visitor) {
  const Place parent = places_.at(directory);
  places_.list(parent, position,
               [&](const std::string& name, const Place& child, std::uint64_t at) {
                 return visitor(name, entry_in(parent, child), at + 1);
               });
}

Lifetime Filesystem::listing_lifetime(NodeId directory) {
  return places_.at(directory).is_revision() ? Lifetime::kForever : Lifetime::kNone;
}

Ticket Filesystem::open(NodeId node, const std::string& consumer, OpenDone done) {
  const auto shared = std::make_shared<const Place>(places_.at(node));
  const Place& place = *shared;
  if (place.kind() != Kind::kFile) throw Error(Errc::kInvalid, "open of what is no file");
  if (place.file() == nullptr) {
    open_files_.acquire(node, shared, [&] { return text_of(place); });
    done({});
    return {};
  }
  const fetch::Target wanted = target(place);
  try {
    return open(shared, node, wanted, consumer, std::move(done));
  } catch (const Error& error) {
    // The kernel looks it up again, and opens what it finds: but once.
    if (error.code() == Errc::kChanged) fetcher_.settle(wanted);
    throw;
  }
}

Ticket Filesystem::open(const PlacePtr& shared, NodeId node, const fetch::Target& wanted,
                        const std::string& consumer, OpenDone done) {
  const Place& place = *shared;
  check_current(node, wanted);
  if (uses_.opened(*place.snapshot, *place.node().file, consumer)) {
    telemetry::Event event = about(telemetry::EventKind::kReference, *place.snapshot);
    if (cache_.mode() == cache::Mode::kProd) {
      event.reason = residence(wanted).complete ? "hit" : "miss";
    }
    tell(std::move(event), consumer, place);
  }
  // Before its fill asks for room: it is this use that may prove the snapshot.
  cache_.opened(place.snapshot, *place.node().file, consumer);
  Backing backing;
  try {
    backing = open_files_.acquire(
        node, shared, [&] { return this->backing(node, wanted, fetch::Fetcher::Begin::kFresh); });
  } catch (...) {
    close(place.snapshot->key());
    throw;
  }
  try {
    check_current(node, wanted);  // it may have been joined after the node was retired
    loads_.opened(place, node, consumer);
  } catch (...) {
    let_go(node);
    throw;
  }

  if (const auto* blob = std::get_if<store::Blob>(&backing)) {
    opened_complete(consumer, place);
    OpenResult opened;
    if (checks_.trusted(blob->digest)) opened.blob = *blob;
    done(opened);
    return {};
  }
  if (std::holds_alternative<UncheckedBlobPtr>(backing)) {
    opened_complete(consumer, place);
    done({});
    return {};
  }
  const fetch::FillPtr& fill = std::get<fetch::FillPtr>(backing);
  const fetch::FillProgress progress = fill->progress();
  if (progress.state == fetch::FillState::kComplete) {
    opened_complete(consumer, place);
  } else if (cache_.mode() == cache::Mode::kProd) {
    opened_incomplete(consumer, place, progress.size - progress.written);
  } else {
    ledger_.open_uncached();
  }
  if (heard_from_source(progress) && progress.state != fetch::FillState::kFailed) {
    done({});
    return {};
  }
  // The first block that is not there.
  const std::uint64_t size = std::min(progress.size - progress.frontier, store::kBlockSize);
  const auto id =
      fill->read(progress.frontier, size, [this, node, done = std::move(done)](const auto& result) {
        if (result.error) release(node);
        done({result.error, std::nullopt});
      });
  return {fill, id};
}

void Filesystem::opened_complete(const std::string& consumer, const Place& place) {
  const snapshot::File& file = *place.file();
  if (ledger_.open_complete(consumer, place.inode(), file.size)) {
    tell(about(telemetry::EventKind::kHit, *place.snapshot, *place.node().file), consumer, place);
  }
  if (file.sha256) store_.touch(*file.sha256);
}

void Filesystem::opened_incomplete(const std::string& consumer, const Place& place,
                                   std::uint64_t missing) {
  ledger_.open_incomplete();
  const std::size_t file = *place.node().file;
  if (!uses_.missed(place.snapshot->key(), file, consumer)) return;
  telemetry::Event event = about(telemetry::EventKind::kMiss, *place.snapshot, file);
  event.bytes = missing;
  tell(std::move(event), consumer, place);
}

void Filesystem::tell(telemetry::Event event, const std::string& consumer,
                      const Place& place) const {
  event.consumer = consumer;
  event.name = place.tree.path;
  events_.put(std::move(event));
}

void Filesystem::close(const Digest& snapshot_key) {
  cache_.closed(snapshot_key);
  uses_.closed(snapshot_key);
}

void Filesystem::release(NodeId node) {
  loads_.closed(node);
  let_go(node);
}

void Filesystem::let_go(NodeId node) {
  const PlacePtr place = open_files_.release(node);
  if (place && place->file() != nullptr) close(place->snapshot->key());
}

void Filesystem::adopt(NodeId node, std::uint32_t opens) {
  PlacePtr place;
  try {
    place = std::make_shared<const Place>(places_.at(node));
    if (place->file() != nullptr) {
      cache_.adopted(place->snapshot->key(), opens);
      uses_.adopted(place->snapshot->key(), opens);
    }
  } catch (const Error&) {
    // Its model was removed meanwhile.
  }
  open_files_.adopt(node, place, opens);
}

Ticket Filesystem::read(NodeId node, std::uint64_t offset, std::uint64_t size,
                        fetch::ReadDone done) {
  const PlacePtr place = place_of(node);
  if (place->kind() != Kind::kFile) throw Error(Errc::kInvalid, "read of what is no file");
  const snapshot::File* file = place->file();
  if (file == nullptr) {
    const auto text =
        std::get<TextPtr>(open_files_.find(node, place, [&] { return text_of(*place); }));
    const std::size_t begin = std::min<std::size_t>(offset, text->size());
    done({std::as_bytes(std::span(*text).subspan(begin, std::min(size, text->size() - begin))),
          std::nullopt});
    return {};
  }
  size = std::min({size, kMaxRead, file->size - std::min(offset, file->size)});
  ledger_.read(size);
  if (size == 0) {
    done({});
    return {};
  }
  const Backing backing = open_files_.find(node, place, [&] {
    const fetch::Target wanted = target(*place);
    // The reader may have bytes that are wrong: from a daemon before this one, or a fill before.
    check_current(node, wanted);
    return this->backing(node, wanted, fetch::Fetcher::Begin::kHeld);
  });
  if (const auto* blob = std::get_if<store::Blob>(&backing)) {
    answer(size, done, [&](auto buffer) { return read_at(*blob->fd, offset, buffer); });
    return {};
  }
  if (const auto* unchecked = std::get_if<UncheckedBlobPtr>(&backing)) {
    answer(size, done, [&](auto buffer) { return checks_.read(*unchecked, offset, buffer); });
    return {};
  }
  const fetch::FillPtr& fill = std::get<fetch::FillPtr>(backing);
  const auto id = fill->read(offset, size, std::move(done));
  return {fill, id};
}

std::string Filesystem::read_link(NodeId node) {
  const Place place = places_.at(node);
  if (place.kind() != Kind::kLink) throw Error(Errc::kInvalid, "no link");
  return places_.hub().link(*place.snapshot, *place.node().file);
}

FilesystemUsage Filesystem::usage() const {
  const store::StoreUsage usage = store_.usage();
  return {.capacity = usage.capacity, .free = usage.free, .files = usage.blobs};
}

// What is open stays what it was, also when its snapshot has left the catalog.
PlacePtr Filesystem::place_of(NodeId node) {
  try {
    return std::make_shared<const Place>(places_.at(node));  // as it is now: digests are learned
  } catch (const Error&) {
    if (PlacePtr open = open_files_.place(node)) return open;
    throw;
  }
}

fetch::Target Filesystem::target(const Place& file) const {
  return {file.snapshot, *file.node().file, sources_.get(file.snapshot->source())};
}

Entry Filesystem::entry(const Place& place) {
  if (place.file() != nullptr) return file_entry(place);
  Entry found;
  found.node = NodeId(place.number, place.index, 0, true);
  found.attributes.kind = place.kind();
  found.attributes.inode = place.inode();
  if (place.is_revision()) {
    found.attributes.mtime = place.node().mtime;
    // Where a name leads can change; what lies below a revision cannot.
    found.name_lifetime = place.index == 0 ? Lifetime::kNone : Lifetime::kForever;
    found.attributes_lifetime = found.name_lifetime;
  }
  if (found.attributes.kind == Kind::kLink) {
    found.attributes.size = places_.hub().link(*place.snapshot, *place.node().file).size();
  } else if (found.attributes.kind == Kind::kFile) {
    found.attributes.size = found.attributes.resident = places_.hub().size(place.text());
    found.attributes_lifetime = Lifetime::kForever;  // what has another text is another node
  }
  return found;
}

// By names outside of a revision something else may be found tomorrow, whatever it is today.
Entry Filesystem::entry_in(const Place& directory, const Place& place) {
  Entry found = entry(place);
  if (!directory.is_revision()) found.name_lifetime = Lifetime::kNone;
  return found;
}

Backing Filesystem::text_of(const Place& place) {
  return std::make_shared<const std::string>(places_.hub().text(place.text()));
}

Entry Filesystem::file_entry(const Place& place) {
  const snapshot::File& file = *place.file();
  const fetch::Target wanted = target(place);
  const Residence here = residence(wanted);
  const bool twin = here.trusted && passthrough_ == Passthrough::kActive;
  Entry found;
  found.node = NodeId(place.number, place.index, incarnation(wanted), twin);
  found.attributes = {.kind = Kind::kFile,
                      .inode = place.inode(),
                      .size = file.size,
                      .resident = here.bytes,
                      .mtime = file.mtime,
                      .executable = file.executable};
  // The name of a file that has no twin yet is looked up at every walk: its next open gets the
  // twin, or a node without the pages that turned out to be wrong. A complete node is checked when
  // it is opened (ESTALE makes the kernel look up again).
  found.name_lifetime = here.trusted ? Lifetime::kForever : Lifetime::kNone;
  found.attributes_lifetime = here.trusted ? Lifetime::kForever : Lifetime::kShort;
  if (here.trusted) complete_nodes_.remember(*file.sha256, found.node);
  return found;
}

Filesystem::Residence Filesystem::residence(const fetch::Target& target) const {
  const snapshot::File& file = target.file();
  if (fetcher_.keep() == fetch::Keep::kMemoryOnly) return {};
  if (file.sha256 && store_.contains(*file.sha256, file.size)) {
    return {.complete = true, .trusted = checks_.trusted(*file.sha256), .bytes = file.size};
  }
  return {.bytes = fetcher_.resident_bytes(target)};
}

std::uint32_t Filesystem::incarnation(const fetch::Target& target) const {
  return target.file().sha256 ? incarnations_.sum(target.key(), target.unlearned_key())
                              : incarnations_.sum(target.key());
}

void Filesystem::check_current(NodeId node, const fetch::Target& target) const {
  const std::uint32_t current = incarnation(target);
  if (current > NodeId::kMaxIncarnation) {
    // There are no node ids left without poisoned pages; the next mount has new ones.
    throw Error(Errc::kCorrupt, "the bytes of this file were wrong too often");
  }
  if (node.incarnation() != current) {
    throw Error(Errc::kChanged, "the pages of this node may be wrong");
  }
}

Backing Filesystem::backing(NodeId node, const fetch::Target& target, fetch::Fetcher::Begin begin) {
  auto made = local_backing(target);
  if (!made && node.complete()) {
    throw Error(Errc::kChanged, "the blob of a complete node is gone");
  }
  if (!made) made = fetcher_.fill(target, begin);
  // Whoever retires a node does so before another fill of it can begin. So if these bytes need not
  // fit the node's pages, that can be seen by now.
  check_current(node, target);
  return *std::move(made);
}

std::optional<Backing> Filesystem::local_backing(const fetch::Target& target) {
  const auto& digest = target.file().sha256;
  if (!digest || fetcher_.keep() != fetch::Keep::kStore || !store_.contains(*digest)) {
    return std::nullopt;
  }
  if (auto blob = store_.find(*digest)) {
    if (blob->size != target.file().size) {
      throw Error(Errc::kInvalid, "the listing gives another size for this digest");
    }
    if (checks_.trusted(*digest)) return *std::move(blob);
    telemetry::Event subject =
        about(telemetry::EventKind::kVerification, *target.snapshot, target.file_index);
    subject.name = catalog_.name_of(target.snapshot->key());
    if (auto checked = checks_.check(*blob, subject)) {
      return std::visit([](auto&& either) -> Backing { return std::move(either); },
                        *std::move(checked));
    }
  }
  // It was there and was not what its name says.
  blob_damaged(*digest);
  throw Error(Errc::kChanged, "the blob was damaged on disk");
}

void Filesystem::blob_gone(const Digest& digest) {
  for (const NodeId node : complete_nodes_.take(digest)) invalidator_.attributes(node);
}

void Filesystem::blob_damaged(const Digest& digest) {
  incarnations_.retire(digest);
  blob_gone(digest);
}

}  // namespace weightfs::vfs
