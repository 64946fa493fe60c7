// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <vector>

namespace weightfs::source {

/// Which of several sources is asked first for a file: the order in which they were named, but one
/// that failed stands back for a while, and one whose bytes were wrong stands back for that file.
/// Where the bytes of several were in a file that was wrong, each of them may have been it; those
/// who are blamed less often go first, so that a right one is found after as many tries as there
/// are sources at most. Bounded. Thread-safe.
class Standing {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Standing(std::size_t sources);

  [[nodiscard]] std::vector<std::size_t> order(const Digest& file, Time now) const;
  void failed(std::size_t source, Time now);
  void worked(std::size_t source);
  /// The source sent bytes of this file.
  void served(std::size_t source, const Digest& file);
  /// All that was sent of the file is forgotten: a fill begins anew.
  void begin(const Digest& file);
  /// What was sent of the file since then was not right.
  void refuted(const Digest& file);
  /// Whether somebody is left who may not have been the one: each gets its turn twice, as the first
  /// time it may have been blamed for another's bytes.
  [[nodiscard]] bool hopeful(const Digest& file) const;

 private:
  struct Of {
    Time back;              ///< asked before its turn not earlier than this
    unsigned failures = 0;  ///< in a row
  };
  struct Record {
    std::set<std::size_t> served;
    std::map<std::size_t, unsigned> blamed;
  };
  struct State {
    std::vector<Of> sources;
    std::map<Digest, Record> files;
  };
  static Record& record(State& state, const Digest& file);

  Synchronized<State> state_;
};

}  // namespace weightfs::source
