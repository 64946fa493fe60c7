// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/restart_policy.hpp"

#include <algorithm>

namespace weightfs::keeper {

std::optional<RestartPolicy::Duration> RestartPolicy::after(Duration life, Hello hello) {
  silent_ = hello == Hello::kSaid ? 0 : silent_ + 1;
  if (silent_ >= kSilentLives) return std::nullopt;
  if (life >= kGoodLife) next_ = Duration(0);
  const Duration pause = next_;
  next_ = std::clamp(2 * pause, kFirstPause, kLongestPause);
  return pause;
}

}  // namespace weightfs::keeper
