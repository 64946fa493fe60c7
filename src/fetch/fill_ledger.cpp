// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/fill_ledger.hpp"

#include "store/partial_blob.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::fetch {

namespace {

constexpr std::uint64_t kBlock = store::kBlockSize;
/// Less is not worth waking a hasher for.
constexpr std::uint64_t kHashStep = 1 << 20;
/// How far a fill without a disk reads ahead of a sequential reader, and in what pieces.
constexpr std::uint64_t kMemoryAhead = 4 << 20;
constexpr std::uint64_t kMemoryPart = 1 << 20;

Planner::Options plan_for(const snapshot::File& file, const FetcherOptions& options) {
  return {file.size, options.part_size, options.connections_per_blob};
}

}  // namespace

FillLedger::FillLedger(const snapshot::File& file, const FetcherOptions& options, Start start)
    : plan_(plan_for(file, options)),
      stall_timeout_(options.stall_timeout),
      deadline_(options.deadline),
      strict_(options.verify == Verify::kStrict),
      one_version_(!file.sha256 && !file.validator.empty()),
      versioned_(!file.validator.empty()),
      place_(start.place),
      planner_(plan_, start.written),
      pattern_(file, {.file_ahead_after = options.file_ahead_after,
                      .snapshot_ahead_after = options.snapshot_ahead_after}),
      retry_(options.retry, start.seed),
      widest_(options.connections_per_blob) {
  if (!start.local) clone_ = Clone::kOver;
  resumed_ = planner_.written_bytes() > 0;
  shown_ = resumed_ && !strict_ && !one_version_;
}

bool FillLedger::join() noexcept {
  if (closed_ || state_ == FillState::kFailed) return false;
  ++holders_;
  return true;
}

void FillLedger::leave() {
  if (--holders_ > 0) return;
  // Whoever comes next begins anew: what the last readers wanted says nothing about them.
  want_ = Want::kDemand;
  widest_ = plan_.connections;
  pattern_.forget();
  loader_seen_ = false;
}

void FillLedger::raise(Want want, TimePoint now) {
  if (want <= want_) return;
  wait_begins(now);
  want_ = want;
}

bool FillLedger::idle() const noexcept {
  const bool completes = place_ == Place::kDisk && planner_.complete();
  return filling() && holders_ == 0 && parked_.empty() && running_.empty() && !hashing_ &&
         !completes;
}

bool FillLedger::close_if_idle() noexcept {
  if (!idle() || closed_) return false;
  closed_ = true;
  return true;
}

bool FillLedger::close_if_over() noexcept {
  if (holders_ > 0 || (filling() && !closed_)) return false;
  closed_ = true;
  return true;
}

FillLedger::Noticed FillLedger::on_read(ByteRange range, TimePoint now) {
  pattern_.on_read(range);
  const Want before = want_;
  if (pattern_.wants_file()) raise(Want::kFile, now);
  const bool loader = pattern_.is_loader() && !std::exchange(loader_seen_, true);
  return {.raised = want_ != before, .loader = loader};
}

bool FillLedger::readable(ByteRange range) const {
  if (state_ == FillState::kComplete) return true;
  return filling() && place_ == Place::kDisk && !strict_ && planner_.is_written(range) &&
         !awaits_verdict(range);
}

bool FillLedger::awaits_verdict(ByteRange range) const noexcept {
  if (verified_ || place_ != Place::kDisk) return false;
  const bool last_block = range.end > (whole().end - 1) / kBlock * kBlock;
  return last_block && (want_ > Want::kDemand || !planner_.has_missing(whole()));
}

std::vector<ParkedRead> FillLedger::verified() {
  verified_ = true;
  if (strict_) return {};
  return parked_.remove_if([&](const ParkedRead& read) { return planner_.is_written(read.range); });
}

void FillLedger::park(ParkedRead read, TimePoint now) {
  wait_begins(now);
  // Others may have wanted something for long, and found no connection because readers go first.
  if (parked_.empty() && !trying()) last_progress_ = now;
  const bool in_one_stream = one_stream_ && holders_ > 0;
  if (strict_ || in_one_stream || awaits_verdict(read.range)) raise(Want::kFile, now);
  parked_.add(std::move(read));
}

std::vector<ParkedRead> FillLedger::admit(std::uint64_t budget,
                                          const ParkedReads::FindBlock& find) {
  return parked_.admit(budget, [&](std::uint64_t block) {
    BlockBytes bytes = find(block);
    if (!bytes) planner_.forget({block * kBlock, (block + 1) * kBlock});
    return bytes;
  });
}

void FillLedger::use_one_stream(TimePoint now) {
  if (place_ != Place::kDisk || std::exchange(one_stream_, true)) return;
  if (holders_ > 0) raise(Want::kFile, now);
}

std::array<bool, kUrgencies> FillLedger::work(TimePoint now) const {
  std::array<bool, kUrgencies> work{};
  if (!may_start(now) || (clone_due() && !running_.empty())) return work;
  const bool ahead_missing = planner_.has_missing(ahead());
  for (const Urgency urgency : {Urgency::kDemand, Urgency::kFile, Urgency::kBackground}) {
    work[static_cast<std::size_t>(urgency)] = ahead_missing && wants_ahead_at(urgency);
  }
  if (!strict_) {
    const std::vector<ByteRange> ranges = demand();
    work[static_cast<std::size_t>(Urgency::kDemand)] = std::any_of(
        ranges.begin(), ranges.end(), [&](ByteRange range) { return planner_.has_missing(range); });
  }
  return work;
}

std::optional<Part> FillLedger::next_part(Urgency urgency, TimePoint now) {
  if (!may_start(now)) return std::nullopt;
  if (clone_due()) {
    const bool asked = wants_ahead_at(urgency) || (urgency == Urgency::kDemand && !parked_.empty());
    if (!asked || !running_.empty()) return std::nullopt;
    clone_ = Clone::kRunning;
    return start(Part::Kind::kClone, {}, now);
  }
  if (one_stream_) {
    if (!wanting()) return std::nullopt;
    const auto range = planner_.take_run();
    return range ? start(Part::Kind::kRange, *range, now) : std::nullopt;
  }
  if (urgency == Urgency::kDemand && !strict_) {
    const auto range = take_demand();
    return range ? start(Part::Kind::kRange, *range, now) : std::nullopt;
  }
  if (!wants_ahead_at(urgency)) return std::nullopt;
  const auto range = take_ahead();
  return range ? start(Part::Kind::kRange, *range, now) : std::nullopt;
}

/// A clone replaces the whole file beneath everybody: parts that write to it, and what was given
/// out, hashed or not. So it runs alone, and only where the bytes that are there are of the version
/// that it will bring.
bool FillLedger::clone_due() const {
  const bool fits = planner_.written_bytes() == 0 || one_version_ || (versioned_ && !resumed_);
  return clone_ == Clone::kUntried && fits && place_ == Place::kDisk &&
         planner_.has_missing(ahead());
}

bool FillLedger::accepts(const Part& part) const noexcept {
  if (!has_place(part) || !running_.contains(part.id)) return false;
  if (!one_stream_) return true;
  return wanting() && std::none_of(running_.begin(), running_.end(), [&](const auto& other) {
           return other.second.part.range.begin < part.range.begin;
         });
}

std::vector<ParkedRead> FillLedger::received(const Part& part, ByteRange bytes, ByteRange whole,
                                             const BlockBytes& block, TimePoint now) {
  received_ += bytes.size();
  skipped(part, now);
  running_.at(part.id).position = bytes.end;
  retry_.on_bytes(bytes);
  if (whole.empty()) return {};
  came(whole);
  if (place_ == Place::kMemory) return parked_.attach(whole.begin / kBlock, block);
  if (strict_) return {};
  bool held = false;
  auto ready = parked_.remove_if([&](const ParkedRead& read) {
    if (read.range.intersect(whole).empty() || !planner_.is_written(read.range)) return false;
    if (!awaits_verdict(read.range)) return true;
    held = true;
    return false;
  });
  if (held) raise(Want::kFile, now);  // or the verdict may never come
  return ready;
}

void FillLedger::skipped(const Part& part, TimePoint now) {
  running_.at(part.id).last_progress = now;
  last_progress_ = now;
}

void FillLedger::part_ended(const Part& part, std::uint64_t position, const TransientError* failure,
                            TimePoint now) {
  if (running_.erase(part.id) > 0) plan_again(part, position, failure, now);
}

void FillLedger::plan_again(const Part& part, std::uint64_t position, const TransientError* failure,
                            TimePoint now) {
  if (!has_place(part)) return;
  // The beginning of a block can wait on disk for its end, but not in memory.
  if (place_ == Place::kMemory) position = std::min(position, position / kBlock * kBlock);
  const ByteRange rest{position, part.range.end};
  if (rest.empty()) return;
  if (failure) {
    retry_.on_failure(rest, *failure, now);
  } else {
    planner_.give_back(rest);
  }
}

bool FillLedger::clone_replaces(const Part& part) noexcept {
  if (!has_place(part) || !running_.contains(part.id)) return false;
  clone_ = Clone::kReplacing;
  return true;
}

std::vector<Part> FillLedger::running() const {
  std::vector<Part> parts;
  for (const auto& [id, running] : running_) parts.push_back(running.part);
  return parts;
}

std::vector<ParkedRead> FillLedger::clone_ended(const Part& part, Cloned result) {
  if (running_.erase(part.id) == 0) return {};
  clone_ = Clone::kOver;
  if (!filling() || place_ != Place::kDisk) return {};
  // Readers may have looked at blocks of the one version while they became the other's.
  if (result == Cloned::kSpoiled) shown_ = !strict_ && planner_.written_bytes() > 0;
  if (result != Cloned::kWhole) return {};
  came(whole());
  if (strict_) return {};
  return parked_.remove_if([&](const ParkedRead& read) { return !awaits_verdict(read.range); });
}

void FillLedger::came(ByteRange whole) {
  planner_.set_written(whole);
  shown_ = shown_ || (!strict_ && !one_version_);
}

bool FillLedger::disown() noexcept {
  const bool unproven = this->unproven();
  shown_ = false;
  return unproven;
}

FillLedger::Tick FillLedger::tick(TimePoint now) {
  if (!filling()) return {};
  const bool trying = this->trying();
  excuse_held(now);
  for (const ByteRange rest : retry_.take_due(now)) planner_.give_back(rest);
  if (!wanting()) retry_.forget_failures();
  const auto failing_since = retry_.failing_since();
  const bool silent = now - last_progress_ >= deadline_;
  // On the way to a place in a file that is sent whole, nothing is known of that place yet.
  const bool on_its_way = one_stream_ && !running_.empty();
  const bool stuck =
      !on_its_way && failing_since && now - std::max(*failing_since, held_until_) >= deadline_;
  // Also where nobody waits any more: its connections are lost to the others.
  const bool hangs = !running_.empty() && silent;
  const bool starved = !trying && wanting() && (kept_out_ || !parked_.empty()) &&
                       now - last_progress_ >= 2 * deadline_;
  Tick tick{.timed_out = hangs || starved || (wanting() && trying && (silent || stuck)),
            .starved = starved,
            .again = false,
            .stalled = {}};
  if (!tick.timed_out) tick.stalled = give_up_stalled(now);
  const bool waits = !parked_.empty() || planner_.has_missing(ahead());
  tick.again = !running_.empty() || retry_.waiting(now) || (wanting() && waits);
  return tick;
}

/// A clone goes, too, as long as it has touched nothing; where its source hangs once, it is not
/// tried again.
std::vector<Part> FillLedger::give_up_stalled(TimePoint now) {
  std::vector<Part> stalled;
  const TransientError failure(Errc::kTimedOut, "stalled");
  for (auto it = running_.begin(); it != running_.end();) {
    const Running& running = it->second;
    const bool is_clone = running.part.kind == Part::Kind::kClone;
    if (now - running.last_progress < stall_timeout_ || (is_clone && clone_ == Clone::kReplacing)) {
      ++it;
      continue;
    }
    stalled.push_back(running.part);
    if (!is_clone) plan_again(running.part, running.position, &failure, now);
    clone_ = Clone::kOver;
    it = running_.erase(it);
  }
  return stalled;
}

bool FillLedger::hash_due() const noexcept {
  // Whoever took it from the queue late finds it closed, and its file let go of.
  if (!filling() || closed_ || place_ != Place::kDisk || hashing_) return false;
  if (planner_.complete()) return true;
  // What an earlier fill left is not read back for a reader who wants a header only.
  const bool growing = received_ > 0 || want_ > Want::kDemand;
  return growing && planner_.frontier() >= hashed_ + kHashStep;
}

std::optional<std::uint64_t> FillLedger::begin_hash() noexcept {
  if (!hash_due()) return std::nullopt;
  hashing_ = true;
  return planner_.frontier();
}

void FillLedger::end_hash(std::uint64_t position) noexcept {
  if (place_ != Place::kDisk) return;
  hashed_ = position;
  hashing_ = fully_hashed();  // the end belongs to the same hasher
}

bool FillLedger::fully_hashed() const noexcept {
  return filling() && place_ == Place::kDisk && planner_.complete() && hashed_ == planner_.size();
}

bool FillLedger::move_to_memory() {
  if (!filling() || place_ == Place::kMemory) return false;
  place_ = Place::kMemory;
  one_stream_ = false;
  Planner::Options plan = plan_;
  plan.part_size = std::min(plan.part_size, kMemoryPart);
  planner_ = Planner(plan, {});
  retry_.drop_rests();
  clone_ = Clone::kOver;
  hashed_ = 0;
  hashing_ = false;
  verified_ = false;
  shown_ = false;
  return true;
}

std::optional<std::vector<ParkedRead>> FillLedger::complete() {
  if (!filling()) return std::nullopt;
  state_ = FillState::kComplete;
  return parked_.remove_all();
}

std::optional<std::vector<ParkedRead>> FillLedger::fail(const Error& error) {
  if (!filling()) return std::nullopt;
  state_ = FillState::kFailed;
  error_ = error;
  return parked_.remove_all();
}

FillProgress FillLedger::progress() const {
  const bool complete = state_ == FillState::kComplete;
  const std::uint64_t on_disk = place_ == Place::kDisk ? planner_.written_bytes() : 0;
  return {.state = state_,
          .want = want_,
          .size = planner_.size(),
          .written = complete ? planner_.size() : on_disk,
          .frontier = complete ? planner_.size() : planner_.frontier(),
          .hashed = complete ? planner_.size() : hashed_,
          .received = received_,
          .holders = holders_,
          .parked = parked_.size(),
          .connections = static_cast<unsigned>(running_.size()),
          .streaming = place_ == Place::kMemory};
}

/// What is wanted beyond what readers wait for. Nobody is interested in the rest of a file whose
/// readers have all gone.
ByteRange FillLedger::ahead() const noexcept {
  if (place_ == Place::kMemory) {
    return holders_ > 0 ? pattern_.next_bytes(kMemoryAhead) : ByteRange{};
  }
  const bool wanted = holders_ > 0 && want_ > Want::kDemand;
  const bool held_back = strict_ && !parked_.empty();
  return wanted || held_back ? whole() : ByteRange{};
}

bool FillLedger::wants_ahead_at(Urgency urgency) const noexcept {
  switch (urgency) {
    case Urgency::kDemand:
      return strict_ && !parked_.empty();
    case Urgency::kFile:
      return want_ == Want::kFile || place_ == Place::kMemory;
    case Urgency::kBackground:
      return want_ == Want::kBackground;
  }
  return false;
}

bool FillLedger::wanting() const noexcept {
  return filling() && !planner_.complete() && (!parked_.empty() || !ahead().empty());
}

bool FillLedger::may_start(TimePoint now) const noexcept {
  const unsigned ceiling = retry_.probing() || one_stream_ ? 1 : widest_;
  const bool cloning = clone_ == Clone::kRunning || clone_ == Clone::kReplacing;
  return filling() && !closed_ && !cloning && running_.size() < ceiling && retry_.may_start(now);
}

std::optional<ByteRange> FillLedger::take_demand() {
  const std::vector<ByteRange> ranges = demand();
  if (const auto bad = retry_.avoid()) {
    std::vector<ByteRange> elsewhere = ranges;
    std::erase_if(elsewhere,
                  [&](ByteRange range) { return range.begin <= *bad && *bad < range.end; });
    const auto range = planner_.take_demand(elsewhere, {});
    if (range || planner_.has_missing(beyond(*bad))) return range;
  }
  return planner_.take_demand(ranges, ahead());
}

std::optional<ByteRange> FillLedger::take_ahead() {
  if (const auto bad = retry_.avoid()) {
    if (const auto range = planner_.take_ahead(beyond(*bad))) return range;
  }
  return planner_.take_ahead(ahead());
}

/// What is wanted ahead behind the block that holds `bad`.
ByteRange FillLedger::beyond(std::uint64_t bad) const noexcept {
  return ahead().intersect({(bad / kBlock + 1) * kBlock, planner_.size()});
}

std::vector<ByteRange> FillLedger::demand() const {
  return place_ == Place::kMemory ? parked_.admitted_ranges() : parked_.ranges();
}

/// A wait is measured from when somebody began to want something, not from the last byte before
/// that.
void FillLedger::wait_begins(TimePoint now) noexcept {
  if (!wanting()) last_progress_ = now;
}

void FillLedger::keep_out(TimePoint now) noexcept {
  if (std::exchange(kept_out_, true) || !parked_.empty()) return;
  if (!trying()) last_progress_ = now;
}

/// Time in which others had all the connections is not held against the source: the deadline runs
/// from the first part that starts.
std::optional<Part> FillLedger::start(Part::Kind kind, ByteRange range, TimePoint now) {
  kept_out_ = false;
  if (running_.empty() && !retry_.probing()) last_progress_ = now;
  const Part part{.kind = kind, .range = range, .place = place_, .id = ++last_part_, .stop = {}};
  running_.emplace(part.id, Running{.part = part, .position = range.begin, .last_progress = now});
  return part;
}

}  // namespace weightfs::fetch
