// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/restart_policy.hpp"

#include <algorithm>

namespace weightfs::keeper {

std::optional<RestartPolicy::Duration> RestartPolicy::after(Duration length, Life life) {
  if (life == Life::kUp) {
    was_up_ = true;
    silent_lives_ = 0;
    silence_ = Duration(0);
  } else {
    ++silent_lives_;
    silence_ += length;
    if (was_up_ ? silence_ >= kLongestSilence : silent_lives_ >= kFirstLives) return std::nullopt;
  }
  if (length >= kGoodLife && life == Life::kUp) next_ = Duration(0);
  const Duration pause = next_;
  next_ = std::clamp(2 * pause, kFirstPause, kLongestPause);
  silence_ += pause;
  return pause;
}

}  // namespace weightfs::keeper
