// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// How a fill keeps to the limits. How it is shared stands at the top of blob_fill.cpp.

#include "fetch/blob_fill.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::fetch {

void BlobFill::set_pace(std::shared_ptr<RateLimiter> pace) {
  state_.with([&](State& state) { state.pace.swap(pace); });
}

std::size_t BlobFill::largest_piece() const {
  const auto pace = state_.with([](const State& state) { return state.pace; });
  const std::size_t piece = host_->context().limits.piece();
  return pace ? std::min(piece, FillLimits::piece(*pace)) : piece;
}

bool BlobFill::wait_for_turn(const Part& part, std::uint64_t position, std::uint64_t bytes) {
  FillContext& context = host_->context();
  FillLimits& limits = context.limits;
  const Piece piece{.part = part, .position = position, .bytes = bytes};
  const auto pace = state_.with([](const State& state) { return state.pace; });
  if (pace && !wait_for(*pace, piece, Limits::kBackground)) return false;
  if (part.place == Place::kMemory) return wait_for(limits.source, piece, Limits::kAll);
  limits.watch_readers(context.tally.source_bytes);
  return wait_for(limits.background, piece, Limits::kBackground) &&
         wait_for(limits.source, piece, Limits::kAll) && wait_for(limits.disk, piece, Limits::kAll);
}

bool BlobFill::wait_for_turn_skipped(const Part& part, std::uint64_t bytes) {
  return wait_for(host_->context().limits.source,
                  {.part = part, .position = part.range.begin, .bytes = bytes}, Limits::kAll);
}

std::optional<Urgency> BlobFill::urgency_of(const Piece& piece) const {
  return state_.with(
      [&](const State& state) { return state.ledger.urgency_of(piece.part, piece.position); });
}

bool BlobFill::wait_for(RateLimiter& limiter, const Piece& piece, Limits whom) {
  if (!limiter.limited()) return true;
  const auto concerned = [&]() -> std::optional<Urgency> {
    const auto urgency = urgency_of(piece);
    if (whom == Limits::kBackground && urgency != Urgency::kBackground) return std::nullopt;
    return urgency;
  };
  const auto urgency = concerned();
  if (!urgency && whom == Limits::kBackground) return true;
  // Bytes that nobody wants any more, but that need not wait, may as well stay.
  if (limiter.try_take(piece.bytes, urgency.value_or(Urgency::kBackground))) return true;
  state_.with([&](State& state) { state.ledger.hold(piece.part); });
  const auto outcome =
      limiter.take(piece.bytes, {.owner = this, .urgency = concerned}, piece.part.stop.get_token());
  state_.with([&](State& state) {
    if (filling(state)) state.ledger.let_go(piece.part, now());
  });
  if (outcome == RateLimiter::Outcome::kUnwanted) return urgency_of(piece).has_value();
  return outcome == RateLimiter::Outcome::kPassed;
}

/// Who reads this fill, or whether anybody does, has changed.
void BlobFill::press() {
  FillLimits& limits = host_->context().limits;
  if (!limits.limited()) return;
  limits.look_again(this);
  make_way_for_readers();
}

/// A reader gets a connection where that is all that it lacks.
void BlobFill::make_way_for_readers() {
  FillLimits& limits = host_->context().limits;
  if (!limits.limited()) return;
  if (state_.with([](const State& state) { return filling(state) && state.ledger.crowded(); })) {
    limits.make_way(this);
  }
}

}  // namespace weightfs::fetch
