// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/retrying_fill.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::fetch {

RetryingFill::RetryingFill(FillPtr first, Make make)
    : target_(first->target()), make_(std::move(make)) {
  state_.with([&](State& state) { state.current = std::move(first); });
}

ReadId RetryingFill::read(std::uint64_t offset, std::uint64_t size, ReadDone done) {
  const ReadId id = state_.with([](State& state) { return ++state.last; });
  ask({.id = id, .offset = offset, .size = size, .done = std::move(done)});
  return id;
}

void RetryingFill::ask(const Asked& asked) {
  const FillPtr fill = state_.with([&](State& state) {
    state.reads.insert_or_assign(asked.id, Read{.fill = state.current});
    return state.current;
  });
  const ReadId inner = fill->read(asked.offset, asked.size,
                                  [self = shared_from_this(), fill, asked](const auto& result) {
                                    self->answered(fill, asked, result);
                                  });
  state_.with([&](State& state) {
    const auto found = state.reads.find(asked.id);
    if (found != state.reads.end() && found->second.fill == fill) found->second.id = inner;
  });
}

void RetryingFill::answered(const FillPtr& fill, const Asked& asked, const ReadResult& result) {
  if (replace(fill.get(), result.error)) return ask(asked);
  state_.with([&](State& state) {
    state.given = state.given || !result.error;
    state.reads.erase(asked.id);
  });
  asked.done(result);
}

void RetryingFill::cancel(ReadId id) {
  const Read read = state_.with([&](const State& state) {
    const auto found = state.reads.find(id);
    return found == state.reads.end() ? Read{} : found->second;
  });
  if (read.fill && read.id != 0) read.fill->cancel(read.id);
}

void RetryingFill::want(Want want) {
  state_.with([&](State& state) { state.want = std::max(state.want, want); });
  current()->want(want);
}

void RetryingFill::precede(const Precedence& precedence) {
  state_.with([&](State& state) {
    state.precedence = state.precedence ? std::min(*state.precedence, precedence) : precedence;
  });
  current()->precede(precedence);
}

void RetryingFill::set_pace(std::shared_ptr<RateLimiter> pace) {
  state_.with([&](State& state) { state.pace = pace; });
  current()->set_pace(std::move(pace));
}

void RetryingFill::on_end(std::function<void()> callback) {
  const FillPtr fill = current();
  // It must hold neither: a fill that nobody wants any more would go on because of it.
  fill->on_end([weak = weak_from_this(), ended = fill.get(), callback = std::move(callback)] {
    const auto self = weak.lock();
    if (self && self->replace(ended, ended->error())) return self->on_end(callback);
    callback();
  });
}

/// Whether there is another fill now, because the one that failed had wrong bytes.
bool RetryingFill::replace(const Fill* failed, const std::optional<Error>& error) {
  if (!error || error->code() != Errc::kCorrupt) return false;
  const auto [over, given] = state_.with(
      [&](const State& state) { return std::pair(state.current.get() != failed, state.given); });
  if (given) return false;
  if (over) return true;
  if (!target_.source->has_others(target_.file())) return false;
  FillPtr next;
  FillPtr before;  // destroyed without the lock
  try {
    next = make_();
  } catch (const Error&) {
    return false;  // what failed first says more
  }
  State wanted;
  state_.with([&](State& state) {
    if (state.current.get() == failed) before = std::exchange(state.current, next);
    wanted.want = state.want;
    wanted.precedence = state.precedence;
    wanted.pace = state.pace;
  });
  if (wanted.precedence) next->precede(*wanted.precedence);
  if (wanted.pace) next->set_pace(wanted.pace);
  next->want(wanted.want);
  return true;
}

}  // namespace weightfs::fetch
