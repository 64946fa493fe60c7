// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "base/fd.hpp"
#include "snapshot/snapshot.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

namespace weightfs::source {

/// Where the bytes of a range go, in order, as they arrive. Called on the thread that called
/// read().
class Sink {
 public:
  virtual ~Sink() = default;
  /// `offset` is the position in the file; calls are contiguous. `data` is valid during the call
  /// only. Throwing ends the read, and the exception comes out of it.
  virtual void write(std::uint64_t offset, std::span<const std::byte> data) = 0;
  /// So many bytes came that lie before the range and were dropped: the source is alive, but sends
  /// whole files. Throwing as above.
  virtual void skipped(std::uint64_t /*bytes*/) {}
};

/// One place where the truth lives. Bytes of two versions of an object are never mixed: every
/// ranged answer is checked against what resolve() saw (status, range, length, validator), and a
/// difference is Error(kChanged) before a byte of it reaches the sink.
///
/// Thread-safe: read() is called from many threads at once, each with a range of its own. Failures
/// that may pass are TransientError; the caller retries, from where the sink stands. Calls end soon
/// after `stop` is requested, with Error(kCancelled).
class Source {
 public:
  virtual ~Source() = default;

  /// What the reference means now. Asks the source each time. Error kNotFound, kPermission,
  /// kInvalid (a bad listing), kTimedOut, TransientError.
  [[nodiscard]] virtual snapshot::Snapshot resolve(std::stop_token stop) = 0;

  /// Sends `range` of `file` (an element of a snapshot that this reference resolved to, today or
  /// earlier) to `sink`. `range` is not empty and lies within the file.
  virtual void read(const snapshot::File& file, ByteRange range, Sink& sink,
                    std::stop_token stop) = 0;

  /// A fill of `file` begins with none of its bytes. Where the listing has its digest and no
  /// validator, the version that its bytes are of is the first that read() sees; what was seen
  /// before is forgotten.
  virtual void begin_afresh(const snapshot::File& /*file*/) {}

  /// What read() sent of this file since begin_afresh() does not have its sha256. Who has other
  /// places to read from does so then.
  virtual void refute(const snapshot::File& /*file*/) {}
  /// Whether it may be worth to read the file anew after it was refuted: there is another place to
  /// read it from, which has not been tried in vain.
  [[nodiscard]] virtual bool has_others(const snapshot::File& /*file*/) const { return false; }

  /// False while the source was last seen to send whole files where ranges were asked for, from
  /// the head of such an answer on: one read of all that is missing then costs no more than a short
  /// one.
  [[nodiscard]] virtual bool serves_ranges() const noexcept { return true; }

  /// Whether open_local() can give anything.
  [[nodiscard]] virtual bool has_local_files() const noexcept { return false; }
  /// The file itself, opened read-only and proven to be the version that was resolved, where it
  /// lies on a filesystem of this machine: a reflink may then take the place of a fill. nullopt
  /// elsewhere.
  [[nodiscard]] virtual std::optional<Fd> open_local(const snapshot::File& file) = 0;

  /// A short name for messages and metrics: the host, or the directory. Never contains a secret.
  [[nodiscard]] virtual std::string describe() const = 0;
};

using SourcePtr = std::shared_ptr<Source>;

}  // namespace weightfs::source
