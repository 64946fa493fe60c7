// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <optional>

namespace weightfs::keeper {

/// When a daemon that died is started again: at once the first time, then after a back-off that
/// doubles from kFirstPause to kLongestPause; one that served for kGoodLife starts over.
///
/// Readers wait meanwhile, so one that came up is not held back for longer than a loop of deaths
/// has to be kept from being a hot one: its back-off ends at kLongestPauseOnceUp, or at the time
/// that it took to come up where that is more, and counts from when it was up. One that served for
/// longer than that is replaced at once.
///
/// When it is given up: where none has ever come up, after kFirstLives lives in a row. Once one
/// has, there are readers that wait, and what keeps the next one from coming up (a full disk, a
/// program that is being replaced) may pass: after kLongestSilence without one. A value, without a
/// clock.
class RestartPolicy {
 public:
  using Duration = std::chrono::milliseconds;
  static constexpr Duration kFirstPause{250};
  static constexpr Duration kLongestPauseOnceUp{1000};
  static constexpr Duration kLongestPause{5000};
  static constexpr Duration kGoodLife{10'000};
  static constexpr int kFirstLives = 5;
  static constexpr Duration kLongestSilence{10 * 60'000};

  struct Life {
    Duration length{};               ///< from its start to its end
    std::optional<Duration> served;  ///< that part of it in which it served; nothing: never came up
  };
  /// The pause after a life has ended; nothing to give up.
  [[nodiscard]] std::optional<Duration> after(const Life& life);
  [[nodiscard]] bool was_up() const noexcept { return was_up_; }

 private:
  Duration backoff_{0};
  Duration silence_{0};  ///< the lives and pauses since one was up
  int silent_lives_ = 0;
  bool was_up_ = false;
};

}  // namespace weightfs::keeper
