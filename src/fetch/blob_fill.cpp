// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// How a fill is shared.
//
// One lock per fill, state_, and nothing slow under it: no I/O, no callback, no call of the host,
// no lock of another fill. (MemoryWindow and SharedPartial have locks of their own, which take no
// other.) Every entry point has the same three steps:
//   1. do the I/O of its own, if it has any;
//   2. change the books (FillLedger) under the lock, and take out of them what follows;
//   3. carry that out: answer reads, and tell the host what there is to do (pass_on).
// The host only queues; a queued fill for which there is nothing to do any more is found out by the
// thread that takes it from the queue, so telling it once too often costs little, and a step 3 that
// runs late or out of order loses nothing: the books are asked again.
//
//   reader       read() ── bytes there? ── yes ──> pread on its own thread, done
//                                └── no ──> parked in the books ──> ready(kDemand)
//   worker       next_part() ──> run(): source ─ bytes ─> partial blob ──> received() ──> answers
//   hasher       hash_step(): one at a time per fill; the one that reaches the end commits
//   timer        tick(): retries that are due, deadlines, also of who waits for a connection
//   checkpointer checkpoint(), close_if_idle()
//
// Who reads: any thread, from `data`, a descriptor of its own to the partial blob's file (or the
// blob's). It stays good through commit, discard and quarantine, because the file behind it does.
// Who writes: workers, within a SharedPartial::Use. Who ends the partial blob: exactly one of
// commit, fail, disk_failed and close_if_idle, through SharedPartial::end(), which waits for no
// one. The key is released, so that the next fill may begin, when the fill is over *and* the
// partial blob is closed: two of them for one key would write over each other.
//
// A part ends early when its bytes have nowhere to go: FillLedger::accepts() is false once the fill
// is over or has left the disk, or gave up the part because nothing came of it. Its worker finds
// out with the next bytes, or by the part's stop token. A read that never comes back costs a thread
// (PartWorkers) and nothing else: it holds no Use, and bytes that it brings too late are of the
// version that the others read, or Source::read() would not have given them out; a write of them
// that is under way changes nothing.

#include "fetch/blob_fill.hpp"

#include "fetch/own_reads.hpp"
#include "fetch/part_run.hpp"
#include "fetch/reflink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace weightfs::fetch {

namespace {

/// A hasher that has done this much of one fill looks after the others.
constexpr std::uint64_t kHashTurn = 16 << 20;

}  // namespace

/// A reader's hold: what a FillPtr really owns.
class BlobFill::Hold {
 public:
  explicit Hold(BlobFillPtr fill) noexcept : fill_(std::move(fill)) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { fill_->leave(); }

 private:
  BlobFillPtr fill_;
};

BlobFillPtr BlobFill::create(std::shared_ptr<FillHost> host, Target target,
                             std::unique_ptr<store::PartialBlob> partial, std::uint64_t seed) {
  FillLedger::Start start{.place = partial ? Place::kDisk : Place::kMemory,
                          .written = partial ? partial->written_blocks() : std::vector<bool>(),
                          .local = partial && target.source->has_local_files(),
                          .seed = seed};
  if (!partial || partial->written_bytes() == 0) target.source->begin_afresh(target.file());
  FillContext& context = host->context();
  FillLedger ledger(target.file(), context.options, std::move(start));
  auto fill = std::make_shared<BlobFill>(std::move(host), std::move(target), std::move(ledger));
  BlobFill& self = *fill;
  self.state_.with([&](State& state) {
    if (partial) {
      state.data = std::make_shared<const Fd>(partial->fd().duplicate());
    } else {
      state.memory = std::make_shared<MemoryWindow::Stream>(context.window);
    }
  });
  self.partial_.emplace(std::move(partial),
                        SharedPartial::Callbacks{.free = [&self] { self.host_->released(self); },
                                                 .given_back = [&self] { self.give_back(); }});
  return fill;
}

BlobFill::BlobFill(std::shared_ptr<FillHost> host, Target target, FillLedger ledger)
    : host_(std::move(host)),
      target_(std::move(target)),
      key_(target_.key()),
      frontier_(target_.file().size),
      state_(State{.ledger = std::move(ledger)}) {
}

BlobFill::~BlobFill() = default;

// Who is interested.

FillPtr BlobFill::join() {
  if (!state_.with([](State& state) { return state.ledger.join(); })) return nullptr;
  return {std::make_shared<Hold>(shared_from_this()), this};
}

void BlobFill::leave() {
  state_.with([](State& state) { state.ledger.leave(); });
  press();
  let_go_if_over();
  pass_on();
}

/// Who holds a fill without reading it (the timer, the checkpointer) may do so for a while, in
/// which an eviction of its file would give nothing back.
void BlobFill::let_go_if_over() {
  std::shared_ptr<const Fd> unused;
  state_.with([&](State& state) {
    if (state.ledger.close_if_over()) unused = std::exchange(state.data, nullptr);
  });
}

void BlobFill::pass_on() {
  std::array<bool, kUrgencies> work{};
  bool hash = false;
  bool idle = false;
  state_.with([&](const State& state) {
    if (!filling(state)) return;
    work = state.ledger.work(now());
    hash = state.ledger.hash_due();
    idle = state.ledger.idle();
  });
  const BlobFillPtr self = shared_from_this();
  for (const Urgency urgency : {Urgency::kDemand, Urgency::kFile, Urgency::kBackground}) {
    if (work[static_cast<std::size_t>(urgency)]) host_->ready(self, urgency);
  }
  if (hash) host_->hash(self);
  if (idle) host_->idle(self);
}

// Workers.

std::optional<Part> BlobFill::next_part(Urgency urgency) {
  const auto ranges = ranges_served();
  const auto part = state_.with([&](State& state) {
    use(ranges, state);
    return state.ledger.next_part(urgency, now());
  });
  if (part) host_->watch(shared_from_this());
  return part;
}

void BlobFill::keep_out() {
  state_.with([&](State& state) {
    if (filling(state)) state.ledger.keep_out(now());
  });
}

/// What the source has shown so far may change with each of its answers.
BlobFill::Ranges BlobFill::ranges_served() const {
  return target_.source->serves_ranges() ? Ranges::kServed : Ranges::kIgnored;
}

void BlobFill::use(Ranges ranges, State& state) const {
  if (ranges == Ranges::kServed) {
    state.ledger.use_ranges();
  } else {
    state.ledger.use_one_stream(now());
  }
}

void BlobFill::run(const Part& part) {
  if (part.kind == Part::Kind::kClone) return run_clone(part);
  FillContext& context = host_->context();
  ++context.tally.requests;
  PartRun run(*this, part);
  PartRun::Outcome outcome = run.execute(part.stop.get_token());
  if (outcome.again) {
    ++context.tally.retries;
    context.log.debug("{}: bytes {}-{} from {}: {}", name(), run.position(), part.range.end,
                      target_.source->describe(), outcome.again->what());
  }
  const auto ranges = ranges_served();
  state_.with([&](State& state) {
    if (outcome.again) state.trouble = outcome.again->what();
    use(ranges, state);
    state.ledger.part_ended(part, run.position(), outcome.again ? &*outcome.again : nullptr, now());
  });
  if (outcome.fatal) {
    const bool spoiled = outcome.fatal->code() == Errc::kChanged;
    fail(*outcome.fatal, spoiled ? Ending::kDiscard : Ending::kKeep);
  }
  pass_on();
}

bool BlobFill::received(const Part& part, ByteRange bytes, ByteRange whole,
                        const BlockBytes& block) {
  host_->context().tally.source_bytes += bytes.size();
  std::vector<ParkedRead> ready;
  bool hash = false;
  bool dirty = false;
  const bool accepted = state_.with([&](State& state) {
    if (!state.ledger.accepts(part)) return false;
    ready = state.ledger.received(part, bytes, whole, block, now());
    hash = state.ledger.hash_due();
    if (part.place == Place::kDisk && !whole.empty()) dirty = !std::exchange(state.dirty, true);
    return true;
  });
  if (!ready.empty()) {
    answer(std::move(ready));
    if (block) pass_on();  // room for the next readers
  }
  if (hash) host_->hash(shared_from_this());
  if (dirty) host_->dirty(shared_from_this());
  return accepted;
}

bool BlobFill::skipped(const Part& part, std::uint64_t bytes) {
  host_->context().tally.source_bytes += bytes;
  const auto ranges = ranges_served();
  return state_.with([&](State& state) {
    use(ranges, state);
    if (!state.ledger.accepts(part)) return false;
    state.ledger.skipped(part, now());
    return true;
  });
}

void BlobFill::run_clone(const Part& part) {
  using Cloned = FillLedger::Cloned;
  std::optional<Error> fatal;
  std::optional<Error> disk;
  Cloned result = Cloned::kNothing;
  bool cloned = false;
  try {
    const auto go_on = [&] {
      return state_.with([&](State& state) { return state.ledger.clone_replaces(part); });
    };
    cloned = reflink(target_, *partial_, go_on);
  } catch (const Error& error) {
    fatal = error;
    result = Cloned::kSpoiled;
  }
  try {
    if (const auto use = cloned ? use_partial() : std::nullopt) {
      write_to_disk([&] { (*use)->set_written({0, target_.file().size}); });
      result = Cloned::kWhole;
    }
  } catch (const Error& error) {
    disk = error;
  }
  if (result == Cloned::kWhole) host_->context().tally.cloned_bytes += target_.file().size;
  auto ready = state_.with([&](State& state) { return state.ledger.clone_ended(part, result); });
  if (fatal) fail(*fatal, Ending::kDiscard);
  if (disk) disk_failed(*disk);
  answer(std::move(ready));
  pass_on();
}

// Hash and end.

void BlobFill::hash_step(std::span<std::byte> buffer) {
  std::shared_ptr<const Fd> data;
  const auto end = state_.with([&](State& state) {
    data = state.data;
    return state.ledger.begin_hash();
  });
  if (!end) return;
  const OwnReads reads(own_reads());
  try {
    frontier_.advance(*data, std::min(*end, frontier_.position() + kHashTurn), buffer);
  } catch (const Error& error) {
    return disk_failed(error);
  }
  const bool finished = state_.with([&](State& state) {
    state.ledger.end_hash(frontier_.position());
    return state.ledger.fully_hashed();
  });
  if (finished) return finish_hash();
  pass_on();
}

void BlobFill::finish_hash() {
  const Digest found = frontier_.digest();
  const std::optional<Digest>& expected = target_.file().sha256;
  if (!expected || *expected == found) {
    answer(state_.with([](State& state) { return state.ledger.verified(); }));
    if (!host_->context().observer.wanted(target_)) {
      // Its model was removed meanwhile. Who reads it has the file open. A digest that is learned
      // from bytes proves them only where it is kept.
      if (expected) host_->context().observer.on_proven(target_);
      partial_->close(Ending::kDiscard, {}, host_->context().log);
      return complete(nullptr);
    }
    const BlobFillPtr self = shared_from_this();
    return partial_->commit(
        {.digest = found,
         .midstates = frontier_.midstates(),
         .write = [self](const auto& publish) { self->write_to_disk(publish); },
         .published = [self](const store::Blob& blob) { self->complete(&blob); },
         .failed = [self](const Error& error) { self->disk_failed(error); }});
  }
  target_.source->refute(target_.file());
  fail(Error(Errc::kCorrupt, fmt::format("{} from {} has the digest {} instead of {}", name(),
                                         target_.source->describe(), found.hex(), expected->hex())),
       Ending::kQuarantine);
}

void BlobFill::complete(const store::Blob* published) {
  std::vector<std::function<void()>> callbacks;
  auto reads = state_.with([&](State& state) {
    auto waiting = state.ledger.complete();
    if (waiting) {
      if (published) state.data = published->fd;
      callbacks = std::exchange(state.on_end, {});
    }
    return waiting;
  });
  // The key is free once the digest is known by which the next fill would find the blob.
  if (reads && published) host_->context().observer.on_complete(target_, *published);
  partial_->release();
  if (!reads) return;
  ++host_->context().tally.completed;
  answer(std::move(*reads));
  let_go_if_over();
  for (const auto& callback : callbacks) callback();
}

void BlobFill::fail(const Error& error, Ending ending) {
  std::vector<std::function<void()>> callbacks;
  std::shared_ptr<MemoryWindow::Stream> memory;
  std::vector<Part> running;
  bool disowned = false;
  auto reads = state_.with([&](State& state) {
    auto waiting = state.ledger.fail(error);
    if (waiting) {
      running = state.ledger.running();
      disowned = ending != Ending::kKeep && state.ledger.disown();
      callbacks = std::exchange(state.on_end, {});
      memory = std::exchange(state.memory, nullptr);
    }
    return waiting;
  });
  if (!reads) return;
  memory.reset();
  for (Part& part : running) part.stop.request_stop();
  FillContext& context = host_->context();
  if (disowned) context.observer.on_disowned(target_);
  // To keep what came takes a flush: nobody who waits for an answer waits for that, nor does the
  // timer, which has the deadlines of the other fills to see to.
  const bool close_later = ending == Ending::kKeep && error.code() != Errc::kCancelled;
  if (!close_later) close(ending, error.what());
  if (error.code() != Errc::kCancelled) {
    ++context.tally.failed;
    if (error.code() == Errc::kCorrupt) ++context.tally.corrupt;
    context.log.warning("{}", error.what());
    context.observer.on_failed(target_, error);
  }
  for (ParkedRead& read : *reads) read.done({.data = {}, .error = error});
  let_go_if_over();
  for (const auto& callback : callbacks) callback();
  if (!close_later) return;
  to_close_ = true;
  host_->idle(shared_from_this());
}

void BlobFill::close(Ending ending, const std::string& reason) {
  partial_->close(ending, reason, host_->context().log);
  partial_->release();
}

void BlobFill::give_back() {
  if (Room* const room = host_->context().options.room) room->given_back();
}

void BlobFill::write_again(const std::function<void()>& write) {
  Room* const room = host_->context().options.room;
  return room ? room->write_again(target_, write) : write();
}

void BlobFill::disk_failed(const Error& error) {
  FillContext& context = host_->context();
  if (context.options.verify == Verify::kStrict) {
    constexpr auto kText = "{}: {}; with verify=strict nothing is read past the disk";
    return fail(Error(error.code(), fmt::format(kText, name(), error.what())), Ending::kDiscard);
  }
  std::vector<std::function<void()>> callbacks;
  std::vector<ParkedRead> ready;
  auto memory = std::make_shared<MemoryWindow::Stream>(context.window);
  bool disowned = false;
  const bool moved = state_.with([&](State& state) {
    disowned = state.ledger.unproven();
    if (!state.ledger.move_to_memory()) return false;
    state.data = nullptr;
    state.memory = std::move(memory);
    callbacks = std::exchange(state.on_end, {});
    ready = admit(state);
    return true;
  });
  if (!moved) return;
  if (disowned) context.observer.on_disowned(target_);
  ++context.tally.streamed;
  context.log.warning("{}: {}; reading past the disk", name(), error.what());
  context.observer.on_begun(target_, Place::kMemory, target_.file().size);
  partial_->close(Ending::kDiscard, {}, context.log);
  answer(std::move(ready));
  for (const auto& callback : callbacks) callback();
  pass_on();
}

// Timer, checkpointer, process.

bool BlobFill::tick() {
  std::string trouble;
  auto tick = state_.with([&](State& state) {
    auto found = state.ledger.tick(now());
    if (!found.stalled.empty()) {
      const ByteRange range = found.stalled.front().range;
      state.trouble = fmt::format("bytes {}-{}: no byte for {} ms", range.begin, range.end,
                                  host_->context().options.stall_timeout.count());
    }
    trouble = state.trouble;
    return found;
  });
  for (Part& part : tick.stalled) {
    part.stop.request_stop();
    ++host_->context().tally.retries;
    host_->context().log.debug("{} from {}: {}; asked for again", name(),
                               target_.source->describe(), trouble);
  }
  if (tick.timed_out) {
    const auto deadline = host_->context().options.deadline;
    const auto waited = tick.starved ? 2 * deadline : deadline;
    fail(Error(Errc::kTimedOut,
               fmt::format("{}: timed out: {} from {} for {} ms{}{}", name(),
                           tick.starved ? "no connection was free to read" : "nothing came",
                           target_.source->describe(), waited.count(),
                           trouble.empty() ? "" : "; last: ", trouble)),
         Ending::kKeep);
    return false;
  }
  pass_on();
  make_way_for_readers();
  return tick.again;
}

void BlobFill::checkpoint() {
  try {
    const auto use = use_partial();
    if (!use || !state_.with([](State& state) { return std::exchange(state.dirty, false); }))
      return;
    write_to_disk([&] { (*use)->checkpoint(); });
  } catch (const Error& error) {
    disk_failed(error);
  }
}

void BlobFill::close_if_idle() {
  if (to_close_.exchange(false)) return close_for_now();
  if (!state_.with([](State& state) { return state.ledger.idle(); })) return;
  checkpoint();  // the slow part, while anybody may still join
  std::shared_ptr<MemoryWindow::Stream> memory;
  const bool closed = state_.with([&](State& state) {
    if (!state.ledger.close_if_idle()) return false;
    memory = std::exchange(state.memory, nullptr);
    return true;
  });
  if (!closed) return;
  memory.reset();
  let_go_if_over();
  close_for_now();
}

/// What came stays for the next fill, unless its model was removed meanwhile: then there is none.
void BlobFill::close_for_now() {
  FillContext& context = host_->context();
  const bool wanted = context.observer.wanted(target_);
  const bool disowned = !wanted && state_.with([](State& state) {
    return state.ledger.place() == Place::kDisk && state.ledger.disown();
  });
  if (disowned) context.observer.on_disowned(target_);
  close(wanted ? Ending::kKeep : Ending::kDiscard, {});
}

void BlobFill::shut_down() {
  fail(Error(Errc::kCancelled, "weightfs is stopping"), Ending::kKeep);
}

}  // namespace weightfs::fetch
