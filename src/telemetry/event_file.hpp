// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "telemetry/event.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace weightfs::telemetry {

/// The log of events on disk (store/FORMAT.md): `events.jsonl`, and `events.jsonl.1` before it. A
/// file that is full becomes the one before, in place of that which was; so both together take
/// twice the limit at most. Holds whole lines only: what a writer that died or a full disk left of
/// one is cut off. Not flushed: a power cut may take the last lines.
///
/// Not thread-safe. Every failure is an Error, and the next call tries again.
class EventFile {
 public:
  /// `most_bytes` of one file; what is appended at once and is larger gets a file of its own.
  EventFile(std::filesystem::path path, std::uint64_t most_bytes);

  struct Tail {
    std::vector<Event> events;  ///< oldest first
    bool whole = true;          ///< there is nothing before them
  };
  /// The last `count` events of both files. Lines that are no events are passed over.
  [[nodiscard]] Tail read_last(std::size_t count);

  /// Adds lines, each with its end.
  void append(std::string_view lines);

 private:
  void open();
  /// Whether it is still the file of that name, as others may remove or truncate it.
  [[nodiscard]] bool is_ours() const;
  void rotate();

  const std::filesystem::path path_;
  const std::filesystem::path before_;
  const std::uint64_t most_bytes_;
  Fd fd_;
  std::uint64_t size_ = 0;  ///< of whole lines
};

}  // namespace weightfs::telemetry
