// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/name_locks.hpp"

namespace weightfs::store {

NameLocks::Turn::Turn(NameLocks& locks, const Digest& digest) : locks_(locks), digest_(digest) {
  auto taken = locks_.taken_.lock();
  taken.wait(locks_.given_back_, [&] { return !taken->contains(digest_); });
  taken->insert(digest_);
}

NameLocks::Turn::~Turn() {
  locks_.taken_.with([&](auto& taken) { taken.erase(digest_); });
  locks_.given_back_.notify_all();
}

}  // namespace weightfs::store
