// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/sha256.hpp"
#include "store/blob.hpp"
#include "telemetry/event.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

namespace weightfs::vfs {

/// A blob that was verified once, but not since the machine started: its disk may have changed it.
/// It can be read all the same, because every part that a read touches is compared with its
/// midstates first, once. Owns its descriptor.
///
/// Thread-safe. Two threads that meet at a part may both check it, which costs a hash and nothing
/// else.
class UncheckedBlob {
 public:
  /// `midstates` are those of the blob (Store::midstates); `subject` is what an event of its check
  /// is about.
  UncheckedBlob(store::Blob blob, std::vector<Midstate> midstates, telemetry::Event subject = {});

  [[nodiscard]] const store::Blob& blob() const noexcept { return blob_; }
  [[nodiscard]] const telemetry::Event& subject() const noexcept { return subject_; }
  /// Reads, less than asked for only at the end. Error(kCorrupt) where a part is not what it was,
  /// or cannot be read.
  std::size_t read(std::uint64_t offset, std::span<std::byte> buffer);
  /// Checks what has not been checked, front to back. False if something is wrong, or if `stop`
  /// came.
  [[nodiscard]] bool check_all(const std::stop_token& stop);
  /// Notes that the blob is damaged. True the first time.
  [[nodiscard]] bool condemn() noexcept { return !condemned_.exchange(true); }

 private:
  [[nodiscard]] bool check(std::size_t part);

  const store::Blob blob_;
  const std::vector<Midstate> midstates_;
  const telemetry::Event subject_;
  std::vector<std::atomic<bool>> intact_;  ///< one per part
  std::atomic<bool> condemned_ = false;
};

using UncheckedBlobPtr = std::shared_ptr<UncheckedBlob>;

}  // namespace weightfs::vfs
