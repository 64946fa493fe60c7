// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "telemetry/event_file.hpp"
#include "telemetry/events.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace weightfs::telemetry {

struct EventLogOptions {
  std::filesystem::path file;
  std::uint64_t file_bytes = 64ULL << 20;  ///< of each of its two files; 0: there is none
  std::size_t remembered = 4096;
};

struct EventLogStatus {
  std::uint64_t recorded = 0;  ///< since the start
  std::uint64_t dropped = 0;   ///< of these: they were not written before they were forgotten
  std::string error;           ///< why the file cannot be written now
};

/// Remembers what happened last, for whoever asks, and writes it down: those who record wait for no
/// disk. One thread ("events") takes what is remembered to the file. While it cannot, because the
/// disk is slow, full or fails, the memory is its queue, and tries again each second; what is
/// forgotten before it was written is counted, and said by an event of its own.
///
/// What a predecessor wrote is remembered at the start, so that who follows the log goes on after
/// a restart.
///
/// Thread-safe. `clock` must outlive it. The destructor writes what is left, where that can be
/// done.
class EventLog final : public EventSink {
 public:
  /// Who waits for events at once; more are refused.
  static constexpr std::size_t kMostWaiting = 64;

  EventLog(EventLogOptions options, const Clock& clock, Log log);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  ~EventLog() override;

  void put(Event event) noexcept override;

  using EventPtr = std::shared_ptr<const Event>;
  struct Query {
    /// Those after this sequence, oldest first; nullopt: the last ones.
    std::optional<std::uint64_t> since;
    std::size_t limit = 0;
    /// How long to wait where there are none after `since`.
    std::chrono::milliseconds wait{0};
  };
  struct Page {
    std::vector<EventPtr> events;
    std::uint64_t last = 0;  ///< to ask for what comes after these
    bool missed = false;     ///< some after `since` are not remembered any more
  };
  /// Error(kBusy) where too many wait.
  [[nodiscard]] Page read(const Query& query);
  /// From now on read() does not wait.
  void end_waiting() noexcept;

  [[nodiscard]] EventLogStatus status() const;
  /// Whether what wrote the log before this one did not say that it stops: it was killed, and what
  /// it recorded last may not be in the file. Constant.
  [[nodiscard]] bool follows_a_death() const noexcept { return follows_a_death_; }

 private:
  struct State {
    std::deque<EventPtr> events;
    std::uint64_t forgotten = 0;     ///< how many came before those
    std::uint64_t forgotten_to = 0;  ///< the sequence of the last of them, as far as is known
    std::uint64_t last = 0;          ///< sequence
    std::uint64_t written = 0;       ///< how many, of all that ever came
    std::uint64_t untold = 0;        ///< dropped, and there was no event that says so
    std::size_t waiting = 0;
    bool waiting_ended = false;
    EventLogStatus status;
  };
  struct Batch {
    std::string lines;
    std::uint64_t end = 0;  ///< State::written after it
  };

  void remember_predecessor();
  void put_into(State& state, Event event) const;
  void run(const std::stop_token& stop);
  [[nodiscard]] std::optional<Batch> next_batch(const std::stop_token& stop);
  /// False where the disk does not take it.
  bool write(const Batch& batch);

  const EventLogOptions options_;
  const Clock& clock_;
  const Log log_;
  EventFile file_;  ///< of the thread
  bool follows_a_death_ = false;
  Synchronized<State> state_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace weightfs::telemetry
