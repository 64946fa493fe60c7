// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "cache/cache.hpp"
#include "catalog/catalog.hpp"
#include "fetch/fetcher.hpp"
#include "source/source_pool.hpp"
#include "store/store.hpp"
#include "telemetry/events.hpp"
#include "vfs/attributes.hpp"
#include "vfs/blob_checks.hpp"
#include "vfs/complete_nodes.hpp"
#include "vfs/counters.hpp"
#include "vfs/hit_ledger.hpp"
#include "vfs/incarnations.hpp"
#include "vfs/invalidator.hpp"
#include "vfs/last_errors.hpp"
#include "vfs/load_watch.hpp"
#include "vfs/open_files.hpp"
#include "vfs/places.hpp"
#include "vfs/use_ledger.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weightfs::vfs {

/// Whether complete files have a node of their own that the kernel reads without us.
enum class Passthrough { kActive, kInactive };

struct LookupResult {
  std::optional<Entry> entry;           ///< nullopt: there is no such name ...
  Lifetime negative = Lifetime::kNone;  ///< ... and for how long the kernel may believe that
};

struct OpenResult {
  std::optional<Error> error;
  /// The verified blob of a complete file: what passthrough reads.
  std::optional<store::Blob> blob;
};
using OpenDone = std::function<void(const OpenResult&)>;

/// A request that waits for the network; `cancel` ends it with kCancelled.
struct Ticket {
  fetch::FillPtr fill;
  fetch::ReadId id = 0;
  void cancel() const {
    if (fill) fill->cancel(id);
  }
};

/// What statfs shows.
struct FilesystemUsage {
  std::uint64_t capacity = 0;  ///< bytes
  std::uint64_t free = 0;
  std::uint64_t files = 0;
};

/// The mount as plain calls: names, attributes, open and read, extended attributes. Knows no
/// libfuse type and no file handle: everything goes by node id, so a successor can answer for its
/// predecessor. Must outlive the requests that it parked: take the Fetcher down first.
///
/// Two nodes per file while passthrough is active: one for the file that is not complete, served
/// from its fill, and its twin for the complete file. Lookup says which one is current; a node
/// never changes its kind. An open of a complete node whose blob is gone is Error(kChanged): the
/// kernel looks up again and finds the other.
///
/// Thread-safe. Calls touch the local disk at most; what needs the network is answered through a
/// callback, at once or later on a fetch thread. Everything given to the constructor must outlive
/// it.
class Filesystem {
 public:
  struct Parts {
    const Clock& clock;
    const catalog::Catalog& catalog;
    store::Store& store;
    cache::Cache& cache;
    fetch::Fetcher& fetcher;
    source::SourcePool& sources;
    Invalidator& invalidator;
    Incarnations& incarnations;
    const LastErrors& last_errors;
    BlobChecks& checks;
    SessionLog& log;
    telemetry::Events events = {};
  };

  explicit Filesystem(const Parts& parts);

  /// Once, before the first request.
  void set_passthrough(Passthrough passthrough) noexcept { passthrough_ = passthrough; }

  [[nodiscard]] LookupResult lookup(NodeId parent, const std::string& name);
  [[nodiscard]] Entry attributes(NodeId node);

  /// Entries of a directory from `position` on (0 is the first); the visitor gets each with the
  /// position after it and returns false to stop. Error(kChanged) for a node that is gone.
  using Visitor =
      std::function<bool(const std::string& name, const Entry& entry, std::uint64_t next_position)>;
  void list(NodeId directory, std::uint64_t position, const Visitor& visitor);
  /// Whether the kernel may keep the listing.
  [[nodiscard]] Lifetime listing_lifetime(NodeId directory);

  /// Throws Error, and `done` is never called; or calls it exactly once, at once or later on a
  /// fetch thread. The open of a file that is not complete waits until its fill has
  /// had bytes from the source, so that one that is out of reach fails the open and not a page
  /// fault later. Where it has had none, and bytes are missing, the open asks for the first block
  /// of those. On success release() must follow some day.
  Ticket open(NodeId node, const std::string& consumer, OpenDone done);
  void release(NodeId node);
  /// Before the first request: opens that an earlier daemon of the session answered.
  void adopt(NodeId node, std::uint32_t opens);

  /// As open(). `done` gets at most `size` bytes, fewer at the end of the file only.
  Ticket read(NodeId node, std::uint64_t offset, std::uint64_t size, fetch::ReadDone done);

  /// What a link says. Error(kInvalid) for what is none.
  [[nodiscard]] std::string read_link(NodeId node);

  [[nodiscard]] std::vector<std::string> attribute_names(NodeId node);
  /// nullopt: no such attribute.
  [[nodiscard]] std::optional<std::string> attribute(NodeId node, const std::string& name);

  [[nodiscard]] FilesystemUsage usage() const;
  [[nodiscard]] Counters counters() const { return ledger_.counters(open_files_.count()); }

  /// The blob is no longer in the store.
  void blob_gone(const Digest& digest);
  /// The blob was found not to be what its name says, and is no longer in the store: pages of it
  /// that the kernel has are poisoned, so the files that show it get new nodes.
  void blob_damaged(const Digest& digest);
  /// What was fetched under this key goes without a verdict; likewise. Before it goes: who opens
  /// the file afterwards must not meet what was read of it.
  void bytes_discarded(const Digest& content_key) { incarnations_.retire(content_key); }

  /// As LoadWatch::flip.
  LoadWatch::Outcome flip(const std::string& name, const Digest& from, LoadWatch::Loaders loaders,
                          const std::function<void()>& flip) {
    return loads_.flip(name, from, loaders, flip);
  }

  /// For `why`: what a path of the mount leads to.
  [[nodiscard]] std::optional<Place> walk(std::string_view path) { return places_.walk(path); }
  /// What reads of this file use when it is not complete.
  [[nodiscard]] fetch::Target target(const Place& file) const;

 private:
  struct Residence {
    bool complete = false;  ///< in the store ...
    bool trusted = false;   ///< ... and may be passed through
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] PlacePtr place_of(NodeId node);
  Entry entry(const Place& place);
  Entry entry_in(const Place& directory, const Place& place);
  Entry file_entry(const Place& place);
  Backing text_of(const Place& place);
  Residence residence(const fetch::Target& target) const;
  std::uint32_t incarnation(const fetch::Target& target) const;
  void check_current(NodeId node, const fetch::Target& target) const;
  void let_go(NodeId node);
  void opened_complete(const std::string& consumer, const Place& place);
  void opened_incomplete(const std::string& consumer, const Place& place, std::uint64_t missing);
  void tell(telemetry::Event event, const std::string& consumer, const Place& place) const;
  void close(const Digest& snapshot_key);
  Ticket open(const PlacePtr& shared, NodeId node, const fetch::Target& wanted,
              const std::string& consumer, OpenDone done);
  Backing backing(NodeId node, const fetch::Target& target, fetch::Fetcher::Begin begin);
  std::optional<Backing> local_backing(const fetch::Target& target);
  std::vector<std::pair<std::string, std::string>> all_attributes(NodeId node);

  const catalog::Catalog& catalog_;
  store::Store& store_;
  cache::Cache& cache_;
  fetch::Fetcher& fetcher_;
  source::SourcePool& sources_;
  Invalidator& invalidator_;
  Incarnations& incarnations_;
  const LastErrors& last_errors_;
  BlobChecks& checks_;
  CompleteNodes complete_nodes_;
  Places places_;
  OpenFiles open_files_;
  LoadWatch loads_;
  HitLedger ledger_;
  UseLedger uses_;
  const telemetry::Events events_;
  std::atomic<Passthrough> passthrough_ = Passthrough::kInactive;
};

}  // namespace weightfs::vfs
