// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weightfs::fetch {

enum class BlockState : std::uint8_t { kMissing, kInFlight, kWritten };

/// The state of each block of a file, all missing at first. Takes memory for those stretches only
/// in which something has happened: a listing may claim any size. Not thread-safe.
class BlockStates {
 public:
  explicit BlockStates(std::size_t count)
      : count_(count), stretches_(count / kStretch + (count % kStretch != 0 ? 1 : 0)) {}

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] BlockState operator[](std::size_t block) const noexcept {
    const auto& stretch = stretches_[block / kStretch];
    return stretch ? (*stretch)[block % kStretch] : BlockState::kMissing;
  }
  void set(std::size_t block, BlockState state) {
    auto& stretch = stretches_[block / kStretch];
    if (!stretch) {
      if (state == BlockState::kMissing) return;
      stretch = std::make_unique<Stretch>();
    }
    (*stretch)[block % kStretch] = state;
  }

 private:
  static constexpr std::size_t kStretch = 4096;
  using Stretch = std::array<BlockState, kStretch>;

  std::size_t count_;
  std::vector<std::unique_ptr<Stretch>> stretches_;  ///< null where all is missing
};

}  // namespace weightfs::fetch
