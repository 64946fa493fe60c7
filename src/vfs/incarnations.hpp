// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "fetch/part.hpp"
#include "vfs/session_log.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weightfs::vfs {

/// What the kernel's pages hold of each content in this session: bytes that nothing has proven yet,
/// and how often such bytes turned out to be wrong, or were given up without a verdict. Each time,
/// the pages are poisoned, so every file with that content gets node ids that were never used
/// before.
///
/// A file whose digest is learned changes its content key in the middle of the session. Its
/// incarnation is therefore the sum over both of its keys: it never goes down.
///
/// All of it outlives the daemon, as the pages do. Where the session log is full (Error kNoSpace)
/// it counts until the daemon ends. Thread-safe. The SessionLog must outlive it.
class Incarnations {
 public:
  explicit Incarnations(SessionLog& log);

  /// `keys` are the content keys that the file has or had.
  template <class... Keys>
  [[nodiscard]] std::uint32_t sum(const Keys&... keys) const {
    return table_.with([&](const Table& table) { return (count(table, keys) + ... + 0U); });
  }
  /// Its bytes were wrong once more, or nobody can tell any more.
  void retire(const Digest& content_key);

  /// Bytes of it that nothing has proven are about to be given out.
  void show(const Digest& content_key, fetch::Place place);
  /// Where they are kept. nullopt: none were given out that have not been proven, or retired,
  /// since.
  [[nodiscard]] std::optional<fetch::Place> shown(const Digest& content_key) const;
  /// All that was given out was right. Where that cannot be written, only this daemon knows it.
  void prove(const Digest& content_key) noexcept;

  /// Which records of a session log still matter, one answer for each: all but those of what was
  /// shown and has been proven, retired or shown again since. They are nearly all that is ever
  /// written: two for every fill that is read from, against one for every directory that is ever
  /// seen. The others stay for good: the kernel never says for certain that it has forgotten a
  /// tree.
  [[nodiscard]] static std::vector<bool> lasting(std::span<const std::string_view> records);

 private:
  struct Table {
    std::unordered_map<Digest, std::uint32_t> retired;
    std::unordered_map<Digest, fetch::Place> shown;
  };
  struct Event {
    std::string_view name;
    Digest key;
  };
  /// nullopt: a record of something else.
  static std::optional<Event> parse(std::string_view record);
  static std::uint32_t count(const Table& table, const Digest& key);
  static void apply(Table& table, std::string_view event, const Digest& key);
  /// Changes the table first, which must not fail.
  void note(std::string_view event, const Digest& key);

  SessionLog& log_;
  Synchronized<Table> table_;
};

}  // namespace weightfs::vfs
