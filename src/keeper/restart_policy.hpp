// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <optional>

namespace weightfs::keeper {

/// When a daemon that died is started again: at once the first time, then after pauses that double
/// from kFirstPause to kLongestPause; a life of kGoodLife starts over. Never again after
/// kSilentLives lives in a row in which it did not say hello. A value, without a clock.
class RestartPolicy {
 public:
  using Duration = std::chrono::milliseconds;
  static constexpr Duration kFirstPause{250};
  static constexpr Duration kLongestPause{5000};
  static constexpr Duration kGoodLife{10'000};
  static constexpr int kSilentLives = 5;

  /// The pause after a life has ended; nothing to give up.
  enum class Hello { kSaid, kSilent };
  [[nodiscard]] std::optional<Duration> after(Duration life, Hello hello);

 private:
  Duration next_{0};
  int silent_ = 0;
};

}  // namespace weightfs::keeper
