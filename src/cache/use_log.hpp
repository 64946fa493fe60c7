// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/log.hpp"
#include "policy/holdings.hpp"
#include "policy/references.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weightfs::cache {

/// What admission and eviction go by, over restarts: who has referred to what, and in which order
/// snapshots were used. A text file in the state directory (FORMAT.md), one line for each change,
/// written anew at start and when it has grown. It survives the daemon at once; a power cut may
/// take the last lines, and with them a little of the order. A disk that fails costs no more than
/// that: it is logged once.
///
/// Not thread-safe: the Governor keeps it under its lock.
class UseLog {
 public:
  struct Use {
    Digest snapshot;
    policy::Area area = policy::Area::kResident;
    std::int64_t time = 0;  ///< seconds since 1970
    bool operator==(const Use&) const = default;
  };
  struct Memory {
    std::vector<policy::References::Record> references;  ///< oldest first
    std::vector<Use> uses;                               ///< least recently used first
  };

  enum class Writing { kFile, kNothing };

  /// Reads what is there; lines that are no line of ours (the last one, torn) are skipped. kNothing
  /// leaves the file as it is, for good.
  UseLog(std::filesystem::path file, Writing writing, Log log);

  /// Whether there was none before.
  [[nodiscard]] bool begun() const noexcept { return begun_; }

  /// What was read at start. Once.
  [[nodiscard]] Memory take() { return std::move(read_); }

  void reference(const policy::References::Record& record);
  void use(const Use& use);
  void drop(const Digest& snapshot);
  /// So many lines that a new file, with this in it, would be much shorter.
  [[nodiscard]] bool wants_rewrite() const noexcept { return lines_ > live_ * 4 + kSpareLines; }
  void rewrite(const Memory& memory);

 private:
  static constexpr std::size_t kSpareLines = 16'384;

  void append(const std::string& line);
  void failed(const char* what);

  const std::filesystem::path file_;
  const Writing writing_;
  const Log log_;
  Fd fd_;
  Memory read_;
  std::size_t lines_ = 0;
  std::size_t live_ = 0;
  bool complained_ = false;
  bool begun_ = false;
};

}  // namespace weightfs::cache
