// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/blob_checks.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"

#include <utility>

namespace weightfs::vfs {

BlobChecks::BlobChecks(const Parts& parts, CheckPolicy policy, Log log)
    : parts_(parts), policy_(policy), log_(std::move(log)) {
  if (policy_ == CheckPolicy::kBoot) {
    thread_ = start_thread("blob-check", [this](const std::stop_token& stop) { run(stop); });
  }
}

BlobChecks::~BlobChecks() = default;

bool BlobChecks::trusted(const Digest& digest) const {
  switch (policy_) {
    case CheckPolicy::kBoot:
      return parts_.store.verified_this_boot(digest);
    case CheckPolicy::kAlways:
      return false;
    case CheckPolicy::kNever:
      return true;
  }
  return false;
}

UncheckedBlobPtr BlobChecks::check(const store::Blob& blob) {
  auto midstates = parts_.store.midstates(blob.digest);
  if (!midstates) {
    if (parts_.store.verify(blob.digest, [](std::uint64_t) {}) != store::VerifyOutcome::kIntact) {
      return nullptr;
    }
    midstates = parts_.store.midstates(blob.digest);
    if (!midstates) return nullptr;
  }
  auto made = std::make_shared<UncheckedBlob>(blob, *std::move(midstates));
  if (policy_ == CheckPolicy::kAlways) return made;
  auto joined = state_.with([&](State& state) {
    const auto [entry, added] = state.running.try_emplace(blob.digest, made);
    if (added) state.queue.push_back(made);
    return entry->second;
  });
  changed_.notify_all();
  return joined;
}

void BlobChecks::run(const std::stop_token& stop) {
  for (;;) {
    UncheckedBlobPtr next;
    {
      auto state = state_.lock();
      if (!state.wait(changed_, stop, [&] { return !state->queue.empty(); })) return;
      next = std::move(state->queue.front());
      state->queue.pop_front();
    }
    const bool intact = next->check_all(stop);
    if (stop.stop_requested()) return;
    conclude(*next, intact);
  }
}

void BlobChecks::conclude(const UncheckedBlob& unchecked, bool intact) {
  const Digest& digest = unchecked.blob().digest;
  try {
    if (intact) {
      parts_.store.mark_verified(digest);
      log_.info("{} is intact ({} bytes)", digest.short_hex(), unchecked.blob().size);
    } else {
      const std::string sentence = "the blob " + digest.short_hex() + " was damaged on disk";
      log_.error("{}; it is in quarantine and will be fetched again", sentence);
      parts_.last_errors.set(digest, sentence);
      parts_.incarnations.retire(digest);  // its filling node may have pages of it
      parts_.store.quarantine(digest, sentence);
    }
  } catch (const Error& error) {
    log_.error("{}: {}", digest.short_hex(), error.what());
  }
  state_.with([&](State& state) { state.running.erase(digest); });
  parts_.dentries.invalidate(digest);
}

}  // namespace weightfs::vfs
