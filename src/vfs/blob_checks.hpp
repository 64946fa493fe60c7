// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "store/store.hpp"
#include "telemetry/events.hpp"
#include "vfs/incarnations.hpp"
#include "vfs/last_errors.hpp"
#include "vfs/unchecked_blob.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace weightfs::vfs {

/// When the bytes of a blob are compared with its name before they are given out (`verify_open`).
enum class CheckPolicy {
  kBoot,    ///< once after each start of the machine; until then it is not passed through
  kAlways,  ///< part by part after every open; never passed through
  kNever,
};

/// Decides whether a blob may be passed through, and brings those that may not yet to where they
/// may: the first open of one puts it into the queue of a thread ("blob-check") that compares all
/// of its parts, ahead of its reader. An intact blob gets its passthrough node. One that is not,
/// whoever finds it first, goes to quarantine, and the next open fetches it again.
///
/// The queue holds names, not descriptors: a machine that comes up may open a model of hundreds of
/// files at once. Thread-safe. Everything given must outlive it.
class BlobChecks {
 public:
  struct Parts {
    store::Store& store;
    Incarnations& incarnations;
    LastErrors& last_errors;
    telemetry::Events events = {};
  };

  BlobChecks(const Parts& parts, CheckPolicy policy, Log log);
  BlobChecks(const BlobChecks&) = delete;
  BlobChecks& operator=(const BlobChecks&) = delete;
  ~BlobChecks();

  /// Whether the kernel may read the blob without us.
  [[nodiscard]] bool trusted(const Digest& digest) const;

  /// What a blob that is not trusted is read through: itself, where it turned out to be intact.
  using Checked = std::variant<store::Blob, UncheckedBlobPtr>;
  /// Joins a check that runs. nullopt where the blob turned out to be damaged at once. A blob
  /// without midstates is hashed as a whole here, which takes its time; `.parts` is only missing
  /// where somebody removed it.
  /// `subject`: what an event of the check is about, but for what is said of it here.
  [[nodiscard]] std::optional<Checked> check(const store::Blob& blob,
                                             const telemetry::Event& subject = {});
  /// UncheckedBlob::read; what it finds damaged is quarantined.
  std::size_t read(const UncheckedBlobPtr& blob, std::uint64_t offset, std::span<std::byte> buffer);

 private:
  struct State {
    struct Open {
      std::weak_ptr<UncheckedBlob> blob;
      telemetry::Event subject = {};
    };
    std::unordered_map<Digest, Open> open;
    std::deque<Digest> queue;
    /// Blobs that were intact and whose mark the store could not write.
    std::unordered_set<Digest> intact;
  };

  void run(const std::stop_token& stop);
  void check_next(const Digest& digest, const std::stop_token& stop);
  [[nodiscard]] UncheckedBlobPtr open(const store::Blob& blob, std::vector<Midstate> midstates,
                                      const telemetry::Event& subject);
  void tell(const char* action, const UncheckedBlob& blob, std::string reason) const;
  void believe(const Digest& digest);
  void condemn(UncheckedBlob& unchecked);

  const Parts parts_;
  const CheckPolicy policy_;
  const Log log_;
  Synchronized<State> state_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace weightfs::vfs
