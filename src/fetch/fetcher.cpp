// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/fetcher.hpp"

#include "base/synchronized.hpp"
#include "fetch/blob_fill.hpp"
#include "fetch/checkpointer.hpp"
#include "fetch/complete_fill.hpp"
#include "fetch/fetch_timer.hpp"
#include "fetch/fill_registry.hpp"
#include "fetch/hash_workers.hpp"
#include "fetch/part_workers.hpp"
#include "fetch/retrying_fill.hpp"

#include <fmt/format.h>

#include <atomic>
#include <random>
#include <utility>

namespace weightfs::fetch {

namespace {

/// More than any one file will hold; a listing that says so is in error, or worse.
constexpr std::uint64_t kMostBytes = 64ULL << 40;

}  // namespace

/// Wires the threads to the fills. Lives until the last fill has let go of it, but does nothing any
/// more after stop().
class Fetcher::State final : public FillHost, public std::enable_shared_from_this<State> {
 public:
  State(store::Store& store, const Clock& clock, FillObserver& observer,
        const FetcherOptions& options, Log log)
      : store_(store),
        context_{.observer = observer,
                 .clock = clock,
                 .options = options,
                 .log = std::move(log),
                 .window = MemoryWindow(options.stream_memory),
                 .limits = FillLimits(clock, options),
                 .tally = {}},
        keep_(options.keep),
        seeds_(std::mt19937_64(std::random_device{}())),
        workers_(options.connections),
        hashers_(options.hash_threads),
        checkpointer_(options.checkpoint_interval) {}

  void ready(const BlobFillPtr& fill, Urgency urgency) override {
    workers_.ready(fill, urgency);
    // A reader does not wait for a connection that only waits for its turn.
    if (urgency == Urgency::kDemand && workers_.crowded()) context_.limits.make_way(nullptr);
  }
  void hash(const BlobFillPtr& fill) override { hashers_.push(fill); }
  void watch(const BlobFillPtr& fill) override { timer_.watch(fill); }
  void dirty(const BlobFillPtr& fill) override { checkpointer_.dirty(fill); }
  void idle(const BlobFillPtr& fill) override { checkpointer_.idle(fill); }
  void released(const BlobFill& fill) override { registry_.release(fill); }
  [[nodiscard]] FillContext& context() override { return context_; }

  [[nodiscard]] FillPtr fill(const Target& target, Begin begin);
  void settle(const Target& target);
  [[nodiscard]] Adopted adopt(const Target& target, const store::Adoption& adoption);
  [[nodiscard]] std::vector<BlobFillPtr> fills() const { return registry_.fills(); }
  [[nodiscard]] std::uint64_t resident_bytes(const Target& target) const {
    const store::PartialKey key = target.key();
    const BlobFillPtr running = registry_.find(key);
    return running ? running->progress().written : store_.partial_bytes(key);
  }
  [[nodiscard]] std::atomic<Keep>& keep() noexcept { return keep_; }

  /// Order: no new fills; the running ones end, which stops what their parts wait for; then the
  /// threads, producers of work before its consumers.
  void stop() {
    for (const BlobFillPtr& fill : registry_.close()) fill->shut_down();
    workers_.stop();
    hashers_.stop();
    timer_.stop();
    checkpointer_.stop();
  }

 private:
  [[nodiscard]] FillRegistry::Made make(const Target& target, Begin begin);
  [[nodiscard]] FillRegistry::Made on_disk(const Target& target);
  [[nodiscard]] FillRegistry::Made in_memory(const Target& target);
  [[nodiscard]] store::Blob adopt_free(const Target& target, const store::Adoption& adoption);
  [[nodiscard]] std::unique_ptr<store::PartialBlob> claim(const Target& target);
  [[nodiscard]] std::unique_ptr<store::PartialBlob> open_partial(const Target& target);
  [[nodiscard]] std::uint64_t seed() {
    return seeds_.with([](std::mt19937_64& random) { return random(); });
  }

  store::Store& store_;
  FillContext context_;
  std::atomic<Keep> keep_;
  Synchronized<std::mt19937_64> seeds_;
  FillRegistry registry_;
  PartWorkers workers_;
  HashWorkers hashers_;
  FetchTimer timer_;
  Checkpointer checkpointer_;
};

FillPtr Fetcher::State::fill(const Target& target, Begin begin) {
  const snapshot::File& file = target.file();
  if (file.size > kMostBytes) {
    throw Error(Errc::kUnsupported,
                fmt::format("{}: {} bytes are more than a file can have", file.path, file.size));
  }
  const auto join_or_make = [self = shared_from_this(), target, begin] {
    FillPtr fill =
        self->registry_.join_or_make(target.key(), [&] { return self->make(target, begin); });
    check_size(target, fill->progress().size);
    return fill;
  };
  FillPtr fill = join_or_make();
  // Who has bytes is to learn that they were wrong.
  const bool has_bytes = begin == Begin::kHeld;
  if (has_bytes || !target.source || !target.source->has_others(file)) return fill;
  return std::make_shared<RetryingFill>(std::move(fill), join_or_make);
}

void Fetcher::State::settle(const Target& target) {
  registry_.without_fill(target.key(), [&] {
    const std::optional<Place> shown = context_.observer.shown(target);
    const bool keeps = keep_ == Keep::kStore && store_.writable();
    const bool here = keeps && store_.partial_bytes(target.key()) > 0;
    const bool fits = !shown || (*shown == Place::kDisk ? here : !keeps);
    if (!fits) context_.observer.on_disowned(target);
  });
}

FillRegistry::Made Fetcher::State::make(const Target& target, Begin begin) {
  const bool strict = context_.options.verify == Verify::kStrict;
  if (keep_ == Keep::kMemoryOnly) {
    if (strict) {
      throw Error(Errc::kUnsupported,
                  "verify=strict needs the store, which this mode leaves alone");
    }
    if (Room* const room = context_.options.room) room->streamed(target);
    return in_memory(target);
  }
  if (begin == Begin::kHeld && !strict && context_.observer.shown(target) == Place::kMemory) {
    ++context_.tally.streamed;
    return in_memory(target);
  }
  try {
    return on_disk(target);
  } catch (const Error& error) {
    if (strict) throw;
    context_.log.warning("{}: {}; reading past the disk", target.file().path, error.what());
    ++context_.tally.streamed;
    return in_memory(target);
  }
}

FillRegistry::Made Fetcher::State::on_disk(const Target& target) {
  const std::optional<Place> shown = context_.observer.shown(target);
  const std::optional<Digest>& listed = target.file().sha256;
  if (const auto digest = listed ? listed : context_.observer.learned(target)) {
    if (auto blob = store_.find(*digest)) {
      if (shown == Place::kMemory) context_.observer.on_disowned(target);
      return {.running = {}, .complete = std::make_shared<CompleteFill>(target, std::move(*blob))};
    }
  }
  std::unique_ptr<store::PartialBlob> partial = claim(target);
  if (!partial) return in_memory(target);
  // Not as long as it is streamed: that would cost a new node for every open.
  const bool lost = shown == Place::kDisk && partial->written_bytes() == 0;
  if (shown == Place::kMemory || lost) context_.observer.on_disowned(target);
  context_.observer.on_begun(target, Place::kDisk, target.file().size - partial->written_bytes());
  return {.running = BlobFill::create(shared_from_this(), target, std::move(partial), seed()),
          .complete = {}};
}

Fetcher::Adopted Fetcher::State::adopt(const Target& target, const store::Adoption& adoption) {
  Adopted adopted = Adopted::kFilling;
  static_cast<void>(registry_.join_or_make(target.key(), [&] {
    FillRegistry::Made made{.running = {}, .complete = {}};
    std::optional<store::Blob> blob = store_.find(target.key());
    adopted = blob ? Adopted::kPresent : Adopted::kYes;
    if (!blob) blob = adopt_free(target, adoption);
    made.complete = std::make_shared<CompleteFill>(target, std::move(*blob));
    return made;
  }));
  return adopted;
}

/// With the key to itself.
store::Blob Fetcher::State::adopt_free(const Target& target, const store::Adoption& adoption) {
  // What an earlier fill has shown of it and left was not proven.
  if (context_.observer.shown(target)) context_.observer.on_disowned(target);
  store_.discard_partial(target.key());
  Room* const room = context_.options.room;
  if (room) room->given_back();
  context_.observer.on_begun(target, Place::kDisk, 0);
  std::optional<store::Blob> blob;
  const auto take = [&] { blob = store_.adopt(target.key(), adoption); };
  if (!room) {
    take();
  } else if (!room->claim(target, take)) {
    throw Error(Errc::kNoSpace, target.file().path + ": the store has no room for it");
  }
  context_.observer.on_complete(target, *blob);
  return *std::move(blob);
}

/// Null where the bytes are not to be kept.
std::unique_ptr<store::PartialBlob> Fetcher::State::claim(const Target& target) {
  const bool strict = context_.options.verify == Verify::kStrict;
  if (!store_.writable()) {  // nor would it help to evict anything
    if (strict) {
      throw Error(Errc::kIo,
                  "verify=strict needs the store, which cannot be written to: " + store_.trouble());
    }
    ++context_.tally.streamed;
    return nullptr;
  }
  Room* const room = context_.options.room;
  if (!room) return open_partial(target);
  std::unique_ptr<store::PartialBlob> partial;
  const bool admitted = room->claim(target, [&] { partial = open_partial(target); });
  if (admitted) return partial;
  if (strict) {
    throw Error(Errc::kNoSpace, fmt::format("{}: the store has no room for it, and with "
                                            "verify=strict nothing is read past the disk",
                                            target.file().path));
  }
  ++context_.tally.streamed;
  return nullptr;
}

FillRegistry::Made Fetcher::State::in_memory(const Target& target) {
  // What was shown of it from the disk need not be of the version that comes now.
  if (context_.observer.shown(target) == Place::kDisk) context_.observer.on_disowned(target);
  context_.observer.on_begun(target, Place::kMemory, target.file().size);
  return {.running = BlobFill::create(shared_from_this(), target, nullptr, seed()), .complete = {}};
}

std::unique_ptr<store::PartialBlob> Fetcher::State::open_partial(const Target& target) {
  const store::PartialKey key = target.key();
  try {
    return store_.partial(key, target.file().size);
  } catch (const Error& error) {
    if (error.code() != Errc::kInvalid) throw;
    // Left by a listing that gave the same file another size.
    context_.observer.on_disowned(target);
    store_.discard_partial(key);
    return store_.partial(key, target.file().size);
  }
}

Fetcher::Fetcher(store::Store& store, const Clock& clock, FillObserver& observer,
                 FetcherOptions options, Log log)
    : state_(std::make_shared<State>(store, clock, observer, options, log.named("fetch"))) {
}

Fetcher::~Fetcher() {
  state_->stop();
}

FillPtr Fetcher::fill(const Target& target, Begin begin) {
  return state_->fill(target, begin);
}

void Fetcher::settle(const Target& target) {
  state_->settle(target);
}

Fetcher::Adopted Fetcher::adopt(const Target& target, const store::Adoption& adoption) {
  return state_->adopt(target, adoption);
}

std::vector<FillPtr> Fetcher::fills() const {
  const std::vector<BlobFillPtr> fills = state_->fills();
  return {fills.begin(), fills.end()};
}

std::uint64_t Fetcher::resident_bytes(const Target& target) const {
  return state_->resident_bytes(target);
}

FetchCounters Fetcher::counters() const {
  FillContext& context = state_->context();
  FetchCounters counters = context.tally.counters();
  const auto use = [](const RateLimiter& limiter) {
    return LimitUse{.rate = limiter.rate(), .waited = limiter.waited()};
  };
  counters.source_limit = use(context.limits.source);
  counters.disk_limit = use(context.limits.disk);
  counters.background_limit = use(context.limits.background);
  return counters;
}

std::shared_ptr<RateLimiter> Fetcher::make_pace(std::uint64_t rate) {
  return state_->context().limits.make_pace(rate);
}

void Fetcher::set_bandwidth(const Bandwidth& bandwidth) {
  FillLimits& limits = state_->context().limits;
  limits.source.set_rate(bandwidth.fill);
  limits.disk.set_rate(bandwidth.write);
}

std::uint64_t Fetcher::streaming_bytes() const {
  return state_->context().window.bytes();
}

void Fetcher::set_keep(Keep keep) {
  state_->keep() = keep;
}

Keep Fetcher::keep() const {
  return state_->keep();
}

}  // namespace weightfs::fetch
