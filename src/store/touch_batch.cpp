// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/touch_batch.hpp"

namespace weightfs::store {

namespace {

constexpr std::size_t kMaxUses = 256;
constexpr std::chrono::seconds kMaxAge{60};

}  // namespace

TouchBatch::TouchBatch(const Clock& clock)
    : clock_(clock), pending_(Pending{.uses = {}, .since = clock.now()}) {
}

TouchBatch::Uses TouchBatch::drain(Pending& pending, Clock::TimePoint now) {
  Uses uses(pending.uses.begin(), pending.uses.end());
  pending.uses.clear();
  pending.since = now;
  return uses;
}

TouchBatch::Uses TouchBatch::add(const Digest& digest, std::int64_t seconds) {
  const Clock::TimePoint now = clock_.now();
  return pending_.with([&](Pending& pending) {
    pending.uses[digest] = seconds;
    const bool due = pending.uses.size() >= kMaxUses || now - pending.since >= kMaxAge;
    return due ? drain(pending, now) : Uses();
  });
}

TouchBatch::Uses TouchBatch::take() {
  const Clock::TimePoint now = clock_.now();
  return pending_.with([&](Pending& pending) { return drain(pending, now); });
}

}  // namespace weightfs::store
