// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "store/store.hpp"
#include "vfs/dentries.hpp"
#include "vfs/incarnations.hpp"
#include "vfs/last_errors.hpp"
#include "vfs/unchecked_blob.hpp"

#include <condition_variable>
#include <deque>
#include <thread>
#include <unordered_map>

namespace weightfs::vfs {

/// When the bytes of a blob are compared with its name before they are given out (`verify_open`).
enum class CheckPolicy {
  kBoot,    ///< once after each start of the machine; until then it is not passed through
  kAlways,  ///< part by part after every open; never passed through
  kNever,
};

/// Decides whether a blob may be passed through, and brings those that may not yet to where they
/// may: the first open of one starts a check of all its parts, ahead of its reader, on a thread of
/// its own
/// ("blob-check"). An intact blob gets its passthrough node; one that is not goes to quarantine,
/// and the next open fetches it again.
///
/// Thread-safe. Everything given must outlive it.
class BlobChecks {
 public:
  struct Parts {
    store::Store& store;
    Dentries& dentries;
    Incarnations& incarnations;
    LastErrors& last_errors;
  };

  BlobChecks(const Parts& parts, CheckPolicy policy, Log log);
  BlobChecks(const BlobChecks&) = delete;
  BlobChecks& operator=(const BlobChecks&) = delete;
  ~BlobChecks();

  /// Whether the kernel may read the blob without us.
  [[nodiscard]] bool trusted(const Digest& digest) const;
  /// For a blob that is not trusted: reads of it, checked. Joins a running check. Null where the
  /// blob turned out to be damaged at once. A blob without midstates is hashed as a whole here,
  /// which takes its time; `.parts` is only missing where somebody removed it.
  [[nodiscard]] UncheckedBlobPtr check(const store::Blob& blob);

 private:
  struct State {
    std::unordered_map<Digest, UncheckedBlobPtr> running;
    std::deque<UncheckedBlobPtr> queue;
  };

  void run(const std::stop_token& stop);
  void conclude(const UncheckedBlob& unchecked, bool intact);

  const Parts parts_;
  const CheckPolicy policy_;
  const Log log_;
  Synchronized<State> state_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace weightfs::vfs
