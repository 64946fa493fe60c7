// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// The readers' side of a fill. How it is shared stands at the top of blob_fill.cpp.

#include "fetch/blob_fill.hpp"

#include "base/file.hpp"
#include "fetch/read_buffer.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::fetch {

ReadId BlobFill::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  const std::uint64_t end = target_.file().size;
  const std::uint64_t begin = std::min(offset, end);
  const ByteRange range{begin, begin + std::min(size, end - begin)};
  const ReadId id = ++last_read_;
  const auto noticed = state_.with([&](State& state) {
    return filling(state) ? state.ledger.on_read(range, now()) : FillLedger::Noticed{};
  });
  attempt({.id = id, .range = range, .done = std::move(done)});
  if (noticed.raised) {
    press();
    host_->watch(shared_from_this());
    pass_on();
  }
  if (noticed.loader) host_->context().observer.on_loader(target_);
  return id;
}

void BlobFill::cancel(ReadId id) {
  auto read = state_.with([&](State& state) { return state.ledger.cancel(id); });
  if (!read) return;
  read->done({.data = {}, .error = Error(Errc::kCancelled, "the reader gave up")});
  answer(state_.with([](State& state) { return admit(state); }));
  pass_on();
}

void BlobFill::want(Want want) {
  state_.with([&](State& state) {
    if (filling(state)) state.ledger.raise(want, now());
  });
  press();
  host_->watch(shared_from_this());
  pass_on();
}

void BlobFill::precede(const Precedence& precedence) {
  precedence_.with([&](Precedence& mine) { mine = std::min(mine, precedence); });
  if (!precedence.is_due()) return;
  const unsigned connections = host_->context().options.connections;
  state_.with([&](State& state) { state.ledger.widen(connections); });
  pass_on();
}

void BlobFill::on_end(std::function<void()> callback) {
  const bool ended = state_.with([&](State& state) {
    if (!filling(state) || state.ledger.place() == Place::kMemory) return true;
    state.on_end.push_back(std::move(callback));
    return false;
  });
  if (ended) callback();
}

/// Answers the read now if it can, else parks it.
void BlobFill::attempt(ParkedRead read) {
  const ReadId id = read.id;
  const ByteRange range = read.range;
  Supply supply;
  std::optional<Error> error;
  std::vector<ParkedRead> ready;
  const bool parked = state_.with([&](State& state) {
    error = state.ledger.error();
    if (error || range.empty()) return false;
    if (state.ledger.readable(range)) {
      supply = BlobFill::supply(state);
      return false;
    }
    state.ledger.park(std::move(read), now());
    ready = admit(state);
    return true;
  });
  if (!parked) {
    if (supply.data) return answer_from(supply, std::move(read));
    return read.done({.data = {}, .error = error});
  }
  if (std::none_of(ready.begin(), ready.end(), [&](const auto& one) { return one.id == id; })) {
    ++host_->context().tally.waited_reads;
    host_->context().tally.waited_bytes += range.size();
  }
  answer(std::move(ready));
  press();
  host_->watch(shared_from_this());  // also as long as there is no connection for it
  pass_on();
}

BlobFill::Supply BlobFill::supply(const State& state) {
  const bool unproven = filling(state) && state.ledger.unproven();
  return {.data = state.data,
          .unproven = unproven ? std::optional(state.ledger.place()) : std::nullopt};
}

void BlobFill::announce(const Supply& supply) {
  if (!supply.unproven || announced_.load() == supply.unproven) return;
  host_->context().observer.on_shown(target_, *supply.unproven);
  announced_ = supply.unproven;  // after it: whoever sees this gives bytes out
}

void BlobFill::answer_from(const Supply& supply, ParkedRead read) {
  announce(supply);
  ReadBuffer buffer(static_cast<std::size_t>(read.range.size()));
  try {
    if (read_at(*supply.data, read.range.begin, buffer.bytes()) != buffer.bytes().size()) {
      throw Error(Errc::kIo, name() + ": the local copy is shorter than it should be");
    }
  } catch (const Error& error) {
    if (!state_.with(filling)) return read.done({.data = {}, .error = error});
    disk_failed(error);
    return attempt(std::move(read));
  }
  read.done({.data = buffer.bytes(), .error = {}});
}

void BlobFill::answer(std::vector<ParkedRead> reads) {
  while (!reads.empty()) {
    const Supply supply = state_.with([](const State& state) { return BlobFill::supply(state); });
    for (ParkedRead& read : reads) {
      if (!read.held.empty()) {
        announce(supply);
        ReadBuffer buffer(static_cast<std::size_t>(read.range.size()));
        read.copy_held(buffer.bytes());
        read.held.clear();
        read.done({.data = buffer.bytes(), .error = {}});
      } else if (supply.data) {
        answer_from(supply, std::move(read));
      } else {
        attempt(std::move(read));  // the disk failed since it was found to be ready
      }
    }
    reads = state_.with([](State& state) { return admit(state); });
  }
}

std::vector<ParkedRead> BlobFill::admit(State& state) {
  if (!state.memory) return {};
  MemoryWindow::Stream& memory = *state.memory;
  return state.ledger.admit(memory.share(),
                            [&](std::uint64_t block) { return memory.find(block); });
}

}  // namespace weightfs::fetch
