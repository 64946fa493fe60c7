// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "fetch/fetcher_options.hpp"
#include "fetch/fill.hpp"
#include "fetch/parked_reads.hpp"
#include "fetch/part.hpp"
#include "fetch/planner.hpp"
#include "fetch/read_pattern.hpp"
#include "fetch/retry_schedule.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace weightfs::fetch {

/// The books of one fill: what is there, what is under way, who waits, what is wanted, and what
/// follows from that. Everything that a fill decides is decided here; BlobFill carries it out.
///
/// Pure: no I/O, no callback, time is a parameter. Not thread-safe: BlobFill keeps it under its
/// lock.
class FillLedger {
 public:
  using TimePoint = Clock::TimePoint;

  struct Start {
    Place place = Place::kDisk;
    std::vector<bool> written;  ///< one flag per block that an earlier fill left
    bool local = false;         ///< the source has the file itself: a clone may be tried
    std::uint64_t seed = 0;     ///< of the jitter
  };
  FillLedger(const snapshot::File& file, const FetcherOptions& options, Start start);

  // Who is interested.

  /// False once the fill has failed or closed: a new one is needed.
  [[nodiscard]] bool join() noexcept;
  void leave();
  void raise(Want want, TimePoint now);
  /// Nobody holds the fill, waits for it or works on it, and it is not about to complete.
  [[nodiscard]] bool idle() const noexcept;
  /// Nobody can join any more if this is true.
  [[nodiscard]] bool close_if_idle() noexcept;
  /// Over, and nobody holds it: from here on nobody joins it either, and its file need not stay
  /// open for anybody.
  [[nodiscard]] bool close_if_over() noexcept;

  // Readers.

  struct Noticed {
    bool raised = false;  ///< more is wanted now
    bool loader = false;  ///< it was this read that gave a loader away (once per fill)
  };
  Noticed on_read(ByteRange range, TimePoint now);
  /// The bytes are on disk and may be given out.
  [[nodiscard]] bool readable(ByteRange range) const;
  void park(ParkedRead read, TimePoint now);
  [[nodiscard]] std::optional<ParkedRead> cancel(ReadId id) { return parked_.remove(id); }
  /// Memory: see ParkedReads::admit. Returns the reads that can be answered.
  [[nodiscard]] std::vector<ParkedRead> admit(std::uint64_t budget,
                                              const ParkedReads::FindBlock& find);

  // Parts.

  /// The source sends whole files whatever is asked for: from now on the file is read to its end,
  /// by one part at a time, for as long as somebody wants any of it. (Past the disk there is no
  /// room for that; nothing changes there.)
  void use_one_stream(TimePoint now);
  /// It sends ranges (again).
  void use_ranges() noexcept { one_stream_ = false; }
  /// For which urgencies next_part() would find something now.
  [[nodiscard]] std::array<bool, kUrgencies> work(TimePoint now) const;
  [[nodiscard]] std::optional<Part> next_part(Urgency urgency, TimePoint now);
  /// So many parts may run side by side, where that is more than so far.
  void widen(unsigned connections) noexcept { widest_ = std::max(widest_, connections); }
  /// Whether bytes of this part still have a place to go to, and it was not given up. Of a file
  /// that is sent whole, also whether it is the part that gets there first, and somebody wants it.
  [[nodiscard]] bool accepts(const Part& part) const noexcept;
  /// `bytes` of a part that is accepted came, and with them the blocks of `whole` are there: on
  /// disk, or in memory as `block`. Returns the reads that can be answered.
  [[nodiscard]] std::vector<ParkedRead> received(const Part& part, ByteRange bytes, ByteRange whole,
                                                 const BlockBytes& block, TimePoint now);
  /// Bytes came that lie before those of their part, which is accepted.
  void skipped(const Part& part, TimePoint now);
  /// How urgent the bytes of the part from `position` on are now, if they cannot be had at once;
  /// nullopt where nobody wants them, or a reader wants some so far behind that they are better
  /// asked for anew.
  [[nodiscard]] std::optional<Urgency> urgency_of(const Part& part, std::uint64_t position) const;
  /// The part has bytes, but waits for its turn to take them: time in which nothing comes of it, or
  /// of the others for its sake, is our doing, and counts against no deadline.
  void hold(const Part& part) noexcept;
  void let_go(const Part& part, TimePoint now) noexcept;
  /// Readers wait for bytes that nothing is asked for, because all connections of the fill are in
  /// use.
  [[nodiscard]] bool crowded() const;
  /// The part ended at `position`. `failure` is null where it is complete or was stopped by us.
  /// Nothing happens for one that was given up: what it did not bring is somebody else's.
  void part_ended(const Part& part, std::uint64_t position, const TransientError* failure,
                  TimePoint now);
  enum class Cloned : std::uint8_t {
    kWhole,    ///< the whole file is there by a reflink
    kNothing,  ///< there is no reflink to be had, and nothing has changed
    kSpoiled,  ///< what is there may be of another version now
  };
  /// The original is open, and its bytes are about to replace the file's. False where the part was
  /// given up meanwhile, and must leave the file alone; from here on it is not given up.
  [[nodiscard]] bool clone_replaces(const Part& part) noexcept;
  /// Returns as received().
  [[nodiscard]] std::vector<ParkedRead> clone_ended(const Part& part, Cloned result);
  /// Those that run and were not given up.
  [[nodiscard]] std::vector<Part> running() const;
  /// A part was asked for, but so many reads of this source have not come back that it gets no
  /// further connection for now.
  void keep_out(TimePoint now) noexcept;

  // Time.

  struct Tick {
    bool timed_out = false;
    bool starved = false;  ///< ... for want of a connection
    bool again = false;    ///< there is still something that only time can bring
    /// Given up, because nothing came of them: to be stopped. What they did not bring is planned
    /// anew; late bytes of theirs are not accepted.
    std::vector<Part> stalled;
  };
  [[nodiscard]] Tick tick(TimePoint now);

  // The hash: one hasher at a time.

  [[nodiscard]] bool hash_due() const noexcept;
  /// How far to hash now; nullopt where somebody else does or nothing is due.
  [[nodiscard]] std::optional<std::uint64_t> begin_hash() noexcept;
  void end_hash(std::uint64_t position) noexcept;
  [[nodiscard]] bool fully_hashed() const noexcept;
  /// The digest is right: reads that waited for the verdict (see awaits_verdict) can be answered.
  [[nodiscard]] std::vector<ParkedRead> verified();

  // Turns of fate.

  /// The disk is of no use any more: everything is missing again, and what was given out is
  /// disowned. Returns false if it was so already, or the fill is over.
  [[nodiscard]] bool move_to_memory();
  /// Returns who waited for it; nullopt where the fill had failed meanwhile.
  [[nodiscard]] std::optional<std::vector<ParkedRead>> complete();
  /// Only the first failure counts, and none after completion: then nullopt.
  [[nodiscard]] std::optional<std::vector<ParkedRead>> fail(const Error& error);

  /// Readers may have bytes that nothing has proven, neither a digest nor a validator.
  [[nodiscard]] bool unproven() const noexcept { return shown_ && !verified_; }
  /// The bytes that came so far do not count any more. Returns unproven().
  [[nodiscard]] bool disown() noexcept;

  [[nodiscard]] FillState state() const noexcept { return state_; }
  [[nodiscard]] Place place() const noexcept { return place_; }
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }
  [[nodiscard]] FillProgress progress() const;

 private:
  [[nodiscard]] bool filling() const noexcept { return state_ == FillState::kFilling; }
  [[nodiscard]] ByteRange whole() const noexcept { return {0, planner_.size()}; }
  [[nodiscard]] ByteRange ahead() const noexcept;
  /// The last block of a file that is being fetched to its end is given out with the verdict on the
  /// whole, so that whoever reads all of it learns of wrong bytes by an error.
  [[nodiscard]] bool awaits_verdict(ByteRange range) const noexcept;
  void came(ByteRange whole);
  [[nodiscard]] bool has_place(const Part& part) const noexcept {
    return filling() && part.place == place_;
  }
  [[nodiscard]] bool clone_due() const;
  [[nodiscard]] bool wanting() const noexcept;
  [[nodiscard]] bool trying() const noexcept {
    return !running_.empty() || retry_.resting() || retry_.probing();
  }
  [[nodiscard]] bool may_start(TimePoint now) const noexcept;
  [[nodiscard]] bool wants_ahead_at(Urgency urgency) const noexcept;
  [[nodiscard]] std::vector<ByteRange> demand() const;
  [[nodiscard]] std::optional<ByteRange> take_demand();
  [[nodiscard]] std::optional<ByteRange> take_ahead();
  [[nodiscard]] ByteRange beyond(std::uint64_t bad) const noexcept;
  void wait_begins(TimePoint now) noexcept;
  std::optional<Part> start(Part::Kind kind, ByteRange range, TimePoint now);
  [[nodiscard]] std::vector<Part> give_up_stalled(TimePoint now);
  void excuse_held(TimePoint now) noexcept;
  void plan_again(const Part& part, std::uint64_t position, const TransientError* failure,
                  TimePoint now);

  const Planner::Options plan_;
  const std::chrono::milliseconds stall_timeout_;
  const std::chrono::milliseconds deadline_;
  const bool strict_;
  /// All bytes under the key are of one version: the validator is part of it, and was compared.
  const bool one_version_;
  const bool versioned_;  ///< there is a validator: what this fill receives is of one version

  Place place_;
  FillState state_ = FillState::kFilling;
  std::optional<Error> error_;
  bool closed_ = false;

  Planner planner_;
  ReadPattern pattern_;
  ParkedReads parked_;
  RetrySchedule retry_;

  unsigned holders_ = 0;
  Want want_ = Want::kDemand;
  unsigned widest_;  ///< parts that may run side by side
  bool loader_seen_ = false;
  bool one_stream_ = false;

  struct Running {
    Part part;
    std::uint64_t position = 0;  ///< all of it before this byte came
    TimePoint last_progress;
    bool held = false;
  };
  std::map<std::uint64_t, Running> running_;  ///< by id; without those that were given up
  std::uint64_t last_part_ = 0;
  enum class Clone : std::uint8_t {
    kUntried,
    kRunning,    ///< nothing is touched yet
    kReplacing,  ///< the file may have become the other at any moment
    kOver,
  } clone_ = Clone::kUntried;
  bool resumed_ = false;  ///< an earlier fill left some of it
  bool kept_out_ = false;
  std::uint64_t received_ = 0;
  TimePoint last_progress_{};
  TimePoint held_until_{};  ///< when a part was last held

  std::uint64_t hashed_ = 0;
  bool hashing_ = false;
  bool verified_ = false;
  bool shown_ = false;  ///< whole blocks came that may be given out, and that may be any version's
};

}  // namespace weightfs::fetch
