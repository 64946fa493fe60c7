// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weightfs::policy {

/// One use of an artifact. Names are numbers: the first one met is 0, the next new one 1.
struct TraceReference {
  std::chrono::milliseconds time{0};
  std::uint64_t bytes = 1;
  std::uint32_t artifact = 0;
  std::uint32_t consumer = 0;
  std::uint32_t node = 0;
};

/// A row that does not parse.
struct SkippedRow {
  std::uint64_t line = 0;  ///< from 1; the record's number where the trace has no lines
  std::string reason;
};

/// Who used what, in the order of time. A value.
struct Trace {
  std::vector<TraceReference> references;
  std::uint32_t artifacts = 0;
  std::uint32_t consumers = 0;  ///< 0: the trace does not say; every reference has number 0
  std::uint32_t nodes = 0;      ///< 0: the trace does not say; every reference has number 0
  bool has_times = false;
  bool has_sizes = false;  ///< else every reference is of one byte

  std::uint64_t skipped = 0;
  std::vector<SkippedRow> first_skipped;
};

}  // namespace weightfs::policy
