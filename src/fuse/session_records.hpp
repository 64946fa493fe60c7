// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "keeper/session_memory.hpp"
#include "vfs/incarnations.hpp"
#include "vfs/session_log.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weightfs::fuse {

/// The SessionMemory as the log that the mount's tables are kept in. Takes out what no longer
/// matters, when it begins and as the log grows. Thread-safe. The memory must outlive it.
class SessionRecords final : public vfs::SessionLog {
 public:
  explicit SessionRecords(keeper::SessionMemory& memory) : memory_(memory) {
    memory_.compact(vfs::Incarnations::lasting);
  }
  void append(std::string_view record) override {
    if (memory_.compaction_due()) memory_.compact(vfs::Incarnations::lasting);
    memory_.append(record);
  }
  [[nodiscard]] std::vector<std::string> records() const override { return memory_.records(); }

 private:
  keeper::SessionMemory& memory_;
};

}  // namespace weightfs::fuse
