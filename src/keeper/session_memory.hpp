// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::keeper {

/// What must survive the daemon for its successor to go on serving the same kernel session, in a
/// memfd that the keeper holds and never looks into. The daemon maps it; every change is a store to
/// memory, so a kill -9 at any instruction leaves it whole: records are written first and published
/// by one atomic length, slots by the store of their node id.
///
/// Layout (native endianness; it never leaves the machine): a header page with magic, version and
/// the saved FUSE_INIT; a table with a slot per open file; two areas for a log of records, of which
/// one is in use: what still matters of the log is copied to the other, and one store makes that
/// the log. The file is sparse: only what is used takes memory.
///
/// Thread-safe. One process writes at a time (the keeper sees to that).
class SessionMemory {
 public:
  static constexpr std::size_t kMaxOpens = 256 << 10;
  static constexpr std::uint64_t kLogBytes = 128ULL << 20;
  static constexpr std::size_t kMaxRecord = 1 << 20;  ///< bytes

  /// A new, empty memory; for the keeper. Sealed against resizing.
  [[nodiscard]] static Fd create();
  /// Maps it. Error(kUnsupported) if its version is another's, kCorrupt if it is damaged.
  explicit SessionMemory(const Fd& memory);
  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;
  ~SessionMemory();

  /// kPending: saved, but the daemon may have died before the kernel got the reply.
  enum class InitState : std::uint32_t { kNone, kPending, kDone };
  [[nodiscard]] InitState init_state() const;
  /// The kernel's FUSE_INIT request as it came (header included), at most 1 KiB. State becomes
  /// kPending.
  void save_init(std::span<const std::byte> request);
  void mark_init_done();
  [[nodiscard]] std::vector<std::byte> saved_init() const;

  /// Appends a record (at most 64 KiB). Error(kNoSpace) when the log is full.
  void append(std::string_view record);
  [[nodiscard]] std::vector<std::string> records() const;

  /// A number that a daemon leaves for its successor; 0 at first.
  [[nodiscard]] std::uint32_t note() const;
  void set_note(std::uint32_t note);

  /// Which of these records to keep, one answer for each; called with the lock held, so it must not
  /// call back.
  using Keep = std::function<std::vector<bool>(std::span<const std::string_view> records)>;
  /// Takes the other records out of the log.
  void compact(const Keep& keep);
  /// Time for compact(): the log has doubled since the last one of this process (or since it was
  /// mapped), or is nearly full and not just because of what was kept then.
  [[nodiscard]] bool compaction_due() const;

  /// How the kernel has a node id open. The mode of a node id must not change while it is open, and
  /// all its passthrough opens must use one backing id (the kernel answers EIO otherwise).
  struct Backing {
    std::uint64_t node_id = 0;
    std::int32_t backing_id = 0;  ///< > 0 passthrough; kCached where it is served by the daemon
    std::uint32_t opens = 0;
  };
  static constexpr std::int32_t kCached = -1;
  [[nodiscard]] std::optional<Backing> backing(std::uint64_t node_id) const;
  /// Adds an open of a node; all opens of one node have one backing id. Before the reply to it.
  /// `request` is the number of the OPEN request. Returns the handle that the kernel is to give
  /// back with RELEASE: no two opens of a session have the same. Error(kNoSpace) when the table is
  /// full.
  std::uint64_t add_open(std::uint64_t node_id, std::int32_t backing_id, std::uint64_t request);
  /// Returns how many opens the node has left; at 0 the caller closes the backing id. nullopt: the
  /// handle was removed before, as when a RELEASE is resent.
  std::optional<std::uint32_t> remove_open(std::uint64_t node_id, std::uint64_t handle);
  struct Open {
    std::uint64_t node_id = 0;
    std::uint64_t handle = 0;
  };
  /// What an OPEN request added. Looks through the whole table.
  [[nodiscard]] std::optional<Open> find_open(std::uint64_t request) const;
  [[nodiscard]] std::vector<Backing> backings() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::keeper
