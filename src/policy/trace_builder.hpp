// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/trace.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace weightfs::policy {

/// One row of a trace, as its format says it.
struct TraceRow {
  std::uint64_t line = 0;  ///< or record
  std::string_view artifact;
  std::optional<std::string_view> consumer;
  std::optional<std::string_view> node;
  std::optional<std::chrono::milliseconds> time;
  std::optional<std::uint64_t> bytes;
};

/// What every format of traces is read into. Confined to one thread.
class TraceBuilder {
 public:
  static constexpr std::size_t kNamedSkips = 5;
  static constexpr std::uint64_t kLargestObject = 1ULL << 60;  ///< bytes

  /// Skips one whose size cannot be: more than kLargestObject, or than sums of sizes have room for.
  void add(const TraceRow& row);
  void skip(std::uint64_t line, std::string reason);

  /// What was added, in the order of time where it has times, else as it came. A trace has times,
  /// sizes, consumers, nodes only if every row has. Error(kInvalid) where nothing was added.
  [[nodiscard]] Trace finish() &&;

 private:
  /// Numbers for names.
  class Names {
   public:
    std::uint32_t number(std::string_view name);
    [[nodiscard]] std::uint32_t count() const noexcept {
      return static_cast<std::uint32_t>(numbers_.size());
    }

   private:
    struct Hash : std::hash<std::string_view> {
      using is_transparent = void;
    };
    std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  };

  Trace trace_;
  Names artifacts_;
  Names consumers_;
  Names nodes_;
  std::uint64_t bytes_ = 0;  ///< of all that were added
  bool all_have_consumers_ = true;
  bool all_have_nodes_ = true;
  bool all_have_times_ = true;
  bool all_have_sizes_ = true;
};

}  // namespace weightfs::policy
