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
      return parts_.store.verified_this_boot(digest) ||
             state_.with([&](const State& state) { return state.intact.contains(digest); });
    case CheckPolicy::kAlways:
      return false;
    case CheckPolicy::kNever:
      return true;
  }
  return false;
}

std::optional<BlobChecks::Checked> BlobChecks::check(const store::Blob& blob,
                                                     const telemetry::Event& subject) {
  auto midstates = parts_.store.midstates(blob.digest);
  if (!midstates) {
    if (parts_.store.verify(blob.digest, [](std::uint64_t) {}) != store::VerifyOutcome::kIntact) {
      return std::nullopt;
    }
    believe(blob.digest);
    // What was verified is what is there now.
    if (auto intact = parts_.store.find(blob.digest)) return *std::move(intact);
    return std::nullopt;
  }
  return open(blob, *std::move(midstates), subject);
}

UncheckedBlobPtr BlobChecks::open(const store::Blob& blob, std::vector<Midstate> midstates,
                                  const telemetry::Event& subject) {
  auto made = std::make_shared<UncheckedBlob>(blob, std::move(midstates), subject);
  if (policy_ == CheckPolicy::kAlways) return made;
  const auto joined = state_.with([&](State& state) {
    const auto [entry, added] =
        state.open.try_emplace(blob.digest, State::Open{.blob = made, .subject = subject});
    if (added) state.queue.push_back(blob.digest);
    if (UncheckedBlobPtr known = entry->second.blob.lock()) return known;
    entry->second.blob = made;
    return made;
  });
  changed_.notify_all();
  return joined;
}

std::size_t BlobChecks::read(const UncheckedBlobPtr& blob, std::uint64_t offset,
                             std::span<std::byte> buffer) {
  try {
    return blob->read(offset, buffer);
  } catch (const Error& error) {
    if (error.code() == Errc::kCorrupt) condemn(*blob);
    throw;
  }
}

void BlobChecks::run(const std::stop_token& stop) {
  for (;;) {
    std::optional<Digest> next;
    {
      auto state = state_.lock();
      if (!state.wait(changed_, stop, [&] { return !state->queue.empty(); })) return;
      next = state->queue.front();
      state->queue.pop_front();
    }
    try {
      check_next(*next, stop);
    } catch (const Error& error) {
      log_.error("{}: {}", next->short_hex(), error.what());
    }
    // From here on an open of what is still not trusted puts it into the queue again.
    state_.with([&](State& state) { state.open.erase(*next); });
  }
}

void BlobChecks::check_next(const Digest& digest, const std::stop_token& stop) {
  auto [blob, subject] = state_.with([&](State& state) {
    const auto found = state.open.find(digest);
    return found == state.open.end() ? std::pair(UncheckedBlobPtr(), telemetry::Event())
                                     : std::pair(found->second.blob.lock(), found->second.subject);
  });
  if (!blob) {  // whoever had it open has closed it, or it was condemned
    const auto found = parts_.store.find(digest);
    if (!found || trusted(digest)) return;
    auto midstates = parts_.store.midstates(digest);
    if (!midstates) return;
    blob = std::make_shared<UncheckedBlob>(*found, *std::move(midstates), std::move(subject));
  }
  const bool intact = blob->check_all(stop);
  if (stop.stop_requested()) return;
  if (intact) {
    believe(digest);
    log_.info("{} is intact ({} bytes)", digest.short_hex(), blob->blob().size);
    tell("intact", *blob, "blob " + digest.short_hex() + ", the first since the boot");
  } else {
    condemn(*blob);
  }
}

void BlobChecks::tell(const char* action, const UncheckedBlob& blob, std::string reason) const {
  telemetry::Event event = blob.subject();
  event.kind = telemetry::EventKind::kVerification;
  event.action = action;
  event.bytes = blob.blob().size;
  event.reason = std::move(reason);
  parts_.events.put(std::move(event));
}

void BlobChecks::believe(const Digest& digest) {
  parts_.store.mark_verified(digest);
  if (parts_.store.verified_this_boot(digest)) return;
  state_.with([&](State& state) { state.intact.insert(digest); });
}

// In this order: who finds the new nodes must not find the damaged blob, neither in the store nor
// among what is open.
void BlobChecks::condemn(UncheckedBlob& unchecked) {
  if (!unchecked.condemn()) return;  // done already
  const Digest& digest = unchecked.blob().digest;
  const std::string sentence = "the blob " + digest.short_hex() + " was damaged on disk";
  try {
    parts_.store.quarantine(digest, sentence, store::identity_of(*unchecked.blob().fd));
    state_.with([&](State& state) {
      state.open.erase(digest);
      state.intact.erase(digest);
    });
    // The check was of a file that is gone, and another has come: that one is not to blame.
    if (parts_.store.contains(digest)) return;
    log_.error("{}; it is in quarantine and will be fetched again", sentence);
    tell("mismatch", unchecked, sentence + "; it is in quarantine");
    parts_.last_errors.set(digest, sentence);
    parts_.incarnations.retire(digest);
  } catch (const Error& error) {
    log_.error("{}: {}", sentence, error.what());
  }
}

}  // namespace weightfs::vfs
