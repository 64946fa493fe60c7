// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fetch/fill.hpp"
#include "fetch/fill_host.hpp"
#include "fetch/fill_ledger.hpp"
#include "fetch/hash_frontier.hpp"
#include "fetch/shared_partial.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weightfs::fetch {

/// A fill that runs: FillLedger decides, this carries it out. The protocol between readers,
/// workers, hashers and timer stands at the top of blob_fill.cpp.
///
/// Passive: has no thread, but is driven by those of its host. Thread-safe. Owns the partial blob
/// from creation to its end. Host, clock and observer must live until the fill has ended
/// (shut_down).
class BlobFill final : public Fill, public std::enable_shared_from_this<BlobFill> {
 public:
  /// `partial` is null for a fill that goes past the disk from the start.
  [[nodiscard]] static BlobFillPtr create(std::shared_ptr<FillHost> host, Target target,
                                          std::unique_ptr<store::PartialBlob> partial,
                                          std::uint64_t seed);
  BlobFill(std::shared_ptr<FillHost> host, Target target, FillLedger ledger);
  ~BlobFill() override;

  // For readers.
  ReadId read(std::uint64_t offset, std::uint64_t size, ReadDone done) override;
  void cancel(ReadId id) override;
  void want(Want want) override;
  void precede(const Precedence& precedence) override;
  void set_pace(std::shared_ptr<RateLimiter> pace) override;
  void on_end(std::function<void()> callback) override;
  [[nodiscard]] FillProgress progress() const override {
    return state_.with([](const State& state) { return state.ledger.progress(); });
  }
  [[nodiscard]] const Target& target() const override { return target_; }
  [[nodiscard]] std::optional<Error> error() const override {
    return state_.with([](const State& state) { return state.ledger.error(); });
  }

  // For the registry.
  [[nodiscard]] const store::PartialKey& key() const noexcept { return key_; }
  /// A reader's hold on the fill; null once it has failed or closed.
  [[nodiscard]] FillPtr join();
  /// After the host has it: tells the host what there is to do.
  void start() { pass_on(); }
  /// Ends the fill because the process ends; what is on disk stays.
  void shut_down();

  // For workers.
  [[nodiscard]] Precedence precedence() const {
    return precedence_.with([](const Precedence& precedence) { return precedence; });
  }
  [[nodiscard]] std::optional<Part> next_part(Urgency urgency);
  /// Runs the part on this thread; returns when it is over, however it went.
  void run(const Part& part);
  /// There is no connection for its source for now.
  void keep_out();

  // For PartRun, on a worker's thread.
  [[nodiscard]] std::optional<SharedPartial::Use> use_partial() { return partial_->use(); }
  [[nodiscard]] std::shared_ptr<MemoryWindow::Stream> memory() const {
    return state_.with([](const State& state) { return state.memory; });
  }
  [[nodiscard]] std::atomic<std::uint64_t>& own_reads() const {
    return host_->context().limits.own_reads;
  }
  /// How many bytes are taken at once at most.
  [[nodiscard]] std::size_t largest_piece() const;
  /// Waits until so many bytes of the part, from `position` on, may be taken and put where they
  /// belong; false if the part is to end instead.
  [[nodiscard]] bool wait_for_turn(const Part& part, std::uint64_t position, std::uint64_t bytes);
  /// Likewise for bytes that come before those of the part, and are dropped.
  [[nodiscard]] bool wait_for_turn_skipped(const Part& part, std::uint64_t bytes);
  /// Books bytes that have their place, answers whom they complete; false if the part is to end.
  bool received(const Part& part, ByteRange bytes, ByteRange whole, const BlockBytes& block);
  /// Likewise for bytes that come before those of the part; they have no place.
  bool skipped(const Part& part, std::uint64_t bytes);
  /// Does a write to the partial blob; once more where the disk was full, with such room as can be
  /// made. Error where that does not help either.
  template <class Write>
  void write_to_disk(const Write& write) {
    try {
      return write();
    } catch (const Error& error) {
      if (error.code() != Errc::kNoSpace) throw;
    }
    write_again(write);
  }
  void disk_failed(const Error& error);

  // For hashers, timer and checkpointer.
  void hash_step(std::span<std::byte> buffer);
  [[nodiscard]] bool tick();
  void checkpoint();
  /// Also closes a fill that has failed and keeps what came.
  void close_if_idle();

 private:
  struct State {
    FillLedger ledger;
    std::shared_ptr<const Fd> data;  ///< where bytes that are there can be read: partial, then blob
    std::shared_ptr<MemoryWindow::Stream> memory;  ///< set when past the disk
    std::vector<std::function<void()>> on_end;
    std::shared_ptr<RateLimiter> pace;
    std::string trouble;  ///< what failed last, for the message of a timeout
    bool dirty = false;   ///< written since the last checkpoint
  };
  class Hold;
  enum class Ranges : std::uint8_t { kServed, kIgnored };
  using Ending = SharedPartial::Ending;

  [[nodiscard]] static bool filling(const State& state) noexcept {
    return state.ledger.state() == FillState::kFilling;
  }
  /// Only while filling: afterwards the clock may be gone.
  [[nodiscard]] Clock::TimePoint now() const { return host_->context().clock.now(); }
  void leave();
  void let_go_if_over();

  void attempt(ParkedRead read);
  /// What reads are answered with.
  struct Supply {
    std::shared_ptr<const Fd> data;
    std::optional<Place> unproven;  ///< where those bytes are that nothing has proven yet
  };
  [[nodiscard]] static Supply supply(const State& state);
  /// Before bytes leave.
  void announce(const Supply& supply);
  void answer_from(const Supply& supply, ParkedRead read);
  void answer(std::vector<ParkedRead> reads);
  [[nodiscard]] static std::vector<ParkedRead> admit(State& state);
  /// Tells the host what there is to do after a change.
  void pass_on();

  /// Bytes on their way through the limits.
  struct Piece {
    const Part& part;
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;
  };
  enum class Limits : std::uint8_t { kAll, kBackground };
  [[nodiscard]] bool wait_for(RateLimiter& limiter, const Piece& piece, Limits whom);
  [[nodiscard]] std::optional<Urgency> urgency_of(const Piece& piece) const;
  void press();
  void make_way_for_readers();

  [[nodiscard]] Ranges ranges_served() const;
  void use(Ranges ranges, State& state) const;
  void run_clone(const Part& part);
  void write_again(const std::function<void()>& write);

  void finish_hash();
  void complete(const store::Blob* published);
  void fail(const Error& error, Ending ending);
  void close(Ending ending, const std::string& reason);
  void give_back();
  void close_for_now();
  [[nodiscard]] const std::string& name() const { return target_.file().path; }

  const std::shared_ptr<FillHost> host_;
  const Target target_;
  const store::PartialKey key_;
  /// Set by create(); ended from the start where there is no disk.
  std::optional<SharedPartial> partial_;
  std::atomic<ReadId> last_read_{0};
  std::atomic<std::optional<Place>> announced_{std::nullopt};  ///< see FillObserver::on_shown
  std::atomic<bool> to_close_{false};  ///< failed, with what came to be kept
  Synchronized<Precedence> precedence_;
  HashFrontier frontier_;  ///< belongs to whom FillLedger::begin_hash() let in
  Synchronized<State> state_;
};

}  // namespace weightfs::fetch
