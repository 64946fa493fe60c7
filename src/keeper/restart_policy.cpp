// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/restart_policy.hpp"

#include <algorithm>

namespace weightfs::keeper {

std::optional<RestartPolicy::Duration> RestartPolicy::after(const Life& life) {
  if (life.served) {
    was_up_ = true;
    silent_lives_ = 0;
    silence_ = Duration(0);
  } else {
    ++silent_lives_;
    silence_ += life.length;
    if (was_up_ ? silence_ >= kLongestSilence : silent_lives_ >= kFirstLives) return std::nullopt;
  }
  const Duration served = life.served.value_or(Duration(0));
  if (served >= kGoodLife) backoff_ = Duration(0);
  const Duration longest =
      life.served ? std::clamp(life.length - served, kLongestPauseOnceUp, kLongestPause)
                  : kLongestPause;
  const Duration pause = std::max(std::min(backoff_, longest) - served, Duration(0));
  backoff_ = std::clamp(2 * backoff_, kFirstPause, kLongestPause);
  silence_ += pause;
  return pause;
}

}  // namespace weightfs::keeper
