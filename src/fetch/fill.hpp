// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "fetch/precedence.hpp"
#include "fetch/target.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace weightfs::fetch {

class RateLimiter;

/// How much of the file is wanted beyond what readers wait for. Goes up as long as anybody holds
/// the fill.
enum class Want { kDemand, kBackground, kFile };

enum class FillState { kFilling, kComplete, kFailed };

struct FillProgress {
  FillState state = FillState::kFilling;
  Want want = Want::kDemand;
  std::uint64_t size = 0;
  std::uint64_t written = 0;   ///< bytes on disk
  std::uint64_t frontier = 0;  ///< length of the prefix that is there without a gap
  std::uint64_t hashed = 0;    ///< bytes behind the contiguous frontier
  std::uint64_t received = 0;  ///< bytes taken from the source by this process
  unsigned holders = 0;        ///< who holds it, to read or to wait for its end
  std::size_t parked = 0;      ///< reads that wait
  unsigned connections = 0;    ///< ranged requests running
  bool streaming = false;      ///< past the disk, through bounded memory
};

/// The bytes of a read, valid during the call only, or the error that ended it.
struct ReadResult {
  std::span<const std::byte> data;
  std::optional<Error> error;
};
using ReadDone = std::function<void(const ReadResult&)>;
using ReadId = std::uint64_t;

/// One blob on its way from its source into the store, shared by all its readers. Made by Fetcher.
///
/// Thread-safe. Keeps working while any reader holds it; after completion it serves reads from the
/// verified bytes, after failure every read gets the error that ended it. May outlive the Fetcher:
/// its reads then fail with kCancelled.
class Fill {
 public:
  virtual ~Fill() = default;

  /// Reads up to `size` bytes (less only at the end of the file). `done` is called exactly once: at
  /// once on this thread where the bytes are there, else later on a fetch thread or on that of
  /// another call of this fill (read, cancel); never under a lock. It must not block. Bytes are
  /// demanded ahead of everything else. Under verify=strict it waits for the whole. Error codes:
  /// kTimedOut (see FetcherOptions::deadline), kChanged, kCorrupt, kPermission, kNotFound,
  /// kCancelled.
  virtual ReadId read(std::uint64_t offset, std::uint64_t size, ReadDone done) = 0;
  /// Ends a parked read with kCancelled; nothing happens if it is over.
  virtual void cancel(ReadId id) = 0;
  /// Raises what is wanted.
  virtual void want(Want want) = 0;
  /// Raises its place among what is wanted in the background. A fill that is due at some time may
  /// have every connection there is, so that what is due later gets no more than it leaves.
  virtual void precede(const Precedence& precedence) = 0;
  /// A limit that the bytes pass which nobody reads, as long as no more than kBackground is wanted;
  /// null: none. The last call counts, whoever else wants the fill. Made by Fetcher::make_pace().
  virtual void set_pace(std::shared_ptr<RateLimiter> pace) = 0;
  /// Calls back once, on any thread, when waiting for completion has come to an end: complete,
  /// failed, or streaming (which never completes). At once if that is so already. Must not block.
  virtual void on_end(std::function<void()> callback) = 0;

  [[nodiscard]] virtual FillProgress progress() const = 0;
  [[nodiscard]] virtual const Target& target() const = 0;
  /// What ended it, once state is kFailed.
  [[nodiscard]] virtual std::optional<Error> error() const = 0;
};

using FillPtr = std::shared_ptr<Fill>;

}  // namespace weightfs::fetch
