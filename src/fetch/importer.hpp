// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/synchronized.hpp"
#include "digest/sha256.hpp"
#include "fetch/fetcher.hpp"
#include "fetch/wanted_files.hpp"
#include "source/file/local_tree.hpp"
#include "store/store.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <unordered_map>
#include <vector>

namespace weightfs::fetch {

/// Takes files that lie on this machine into the store: finds out by hashing which of those that
/// are wanted they are, and fills these from them. A fill like any other (fetcher.hpp): by reflink
/// where the filesystem can, else by copying, hashed again as it is then, shared with readers who
/// come meanwhile. What somebody else is fetching is left to him.
///
/// Nothing is taken for what its name says: readers who join a fill have its bytes before they
/// are proven. The name only spares the hashing of what is not wanted.
///
/// One use. Has `files_at_once` threads ("import-N") while run() is running, of which `hashers`
/// hash. All that is given must outlive it.
class Importer {
 public:
  /// Whether the file in the store is one of its own, or another name of the one that was found.
  enum class How : std::uint8_t { kCopy, kLink };
  enum class DryRun : std::uint8_t { kNo, kYes };
  struct Options {
    How how = How::kCopy;
    DryRun dry_run = DryRun::kNo;
    unsigned hashers = 2;
    unsigned files_at_once = 16;  ///< small ones wait for flushes, which they share
  };

  enum class Outcome : std::uint8_t {
    kReflinked,
    kLinked,
    kCopied,
    kWouldTake,   ///< of a dry run
    kPresent,     ///< the store has it, going by its digest, its name or its size
    kUnknown,     ///< nothing that is wanted
    kMismatched,  ///< not what its name says
    kFetching,    ///< somebody else is fetching the same from elsewhere
    kFailed,
  };
  struct Imported {
    const source::LocalTree::File& file;
    Outcome outcome;
    const Target* target = nullptr;   ///< whose content it is, if it is wanted
    std::optional<Error> error = {};  ///< why it failed
  };

  struct Parts {
    Fetcher& fetcher;
    store::Store& store;
    const WantedFiles& wanted;
    std::shared_ptr<source::LocalTree> tree;
    /// Makes room for a snapshot, once each, before the first file of it; Error where it cannot.
    std::function<void(const snapshot::SnapshotPtr&)> admit;
    /// What became of a file; from any of the threads.
    std::function<void(const Imported&)> on_file;
    /// Bytes that were read to find out what they are, or that came into the store, or need not:
    /// in all, twice what the files have, or once in a dry run. Likewise.
    std::function<void(std::uint64_t)> on_bytes;
  };
  Importer(Parts parts, const Options& options);

  /// Blocks until all are done. Error(kCancelled).
  void run(const std::vector<source::LocalTree::File>& files, const std::stop_token& stop);

 private:
  using File = source::LocalTree::File;
  struct Hashed {
    Digest digest;
    std::vector<Midstate> midstates;
  };
  struct Found {  ///< a file, and what is in it
    const File* file;
    Hashed hashed;
    const Target* target;
  };
  struct Result {
    Outcome outcome;
    std::optional<Error> error = {};
  };
  struct Admission {
    std::once_flag asked;
    std::optional<Error> refusal;
  };

  void look_at(const File& file, const std::stop_token& stop);
  [[nodiscard]] std::optional<Outcome> outcome_unread(const File& file) const;
  [[nodiscard]] Hashed hash(const File& file, const std::stop_token& stop);
  void take_first(Found found, const std::stop_token& stop);
  [[nodiscard]] Result take(const Found& found, const std::stop_token& stop);
  void admit(const snapshot::SnapshotPtr& snapshot);
  [[nodiscard]] Result fill(const Found& found, const std::stop_token& stop);
  [[nodiscard]] std::optional<Result> try_fill(const Found& found, const std::stop_token& stop);
  [[nodiscard]] Result link(const Found& found);
  void wait_for_end(const FillPtr& fill, const std::stop_token& stop);
  void tell(const Found& found, const Result& result);

  const Parts parts_;
  const Options options_;
  std::counting_semaphore<> hashing_;
  /// Contents that are being taken, and the other files that have them.
  Synchronized<std::unordered_map<Digest, std::vector<Found>>> taking_;
  Synchronized<std::unordered_map<Digest, std::shared_ptr<Admission>>> admissions_;
};

}  // namespace weightfs::fetch
