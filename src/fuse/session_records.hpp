// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "keeper/session_memory.hpp"
#include "vfs/session_log.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::fuse {

/// The SessionMemory as the log that the mount's tables are kept in, and what else a successor has
/// to know. Takes out what no longer matters, when it begins and as the log grows. Thread-safe. The
/// memory must outlive it.
class SessionRecords final : public vfs::SessionLog {
 public:
  explicit SessionRecords(keeper::SessionMemory& memory);

  void append(std::string_view record) override;
  [[nodiscard]] std::vector<std::string> records() const override { return memory_.records(); }

  /// The configuration file that the daemon goes by: its successor does, too, where the file has
  /// become one that nobody can go by. Error(kInvalid) for one that is too long to remember.
  void remember_configuration(std::string_view text);
  /// nullopt where none was remembered.
  [[nodiscard]] static std::optional<std::string> configuration(
      const keeper::SessionMemory& memory);

 private:
  keeper::SessionMemory& memory_;
};

}  // namespace weightfs::fuse
