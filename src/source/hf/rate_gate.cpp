// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/rate_gate.hpp"

#include "base/thread.hpp"
#include "net/retry_policy.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

namespace weightfs::source {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

/// A server may ask for a window; more than this is a mistake of somebody's clock.
constexpr seconds kLongest{3600};
constexpr seconds kShortest{1};

/// The parameter of a structured field (RFC 9651): the digits behind ";NAME=".
std::optional<std::uint64_t> parameter(std::string_view field, std::string_view name) {
  for (std::size_t at = field.find(';'); at != std::string_view::npos; at = field.find(';', at)) {
    field.remove_prefix(at + 1);
    at = 0;
    while (field.starts_with(' ')) field.remove_prefix(1);
    if (!field.starts_with(name) || field.size() <= name.size() || field[name.size()] != '=')
      continue;
    std::uint64_t value = 0;
    const char* const begin = field.data() + name.size() + 1;
    const auto [end, error] = std::from_chars(begin, field.data() + field.size(), value);
    if (error == std::errc{} && end != begin) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<milliseconds> asked_wait(const net::ResponseHead& head) {
  constexpr std::uint64_t kMost = static_cast<std::uint64_t>(kLongest.count());
  const bool refused = head.status == 429;
  // Who refuses and says "now" would be asked for ever.
  const milliseconds least = refused ? kShortest : milliseconds(0);
  const std::string limit = head.header("ratelimit").value_or("");
  if (parameter(limit, "r") == 0U) {
    if (const auto wait = parameter(limit, "t")) {
      return std::max<milliseconds>(seconds(std::min(*wait, kMost)), least);
    }
  }
  if (!refused) return std::nullopt;
  const auto wait = net::parse_retry_after(head.header("retry-after").value_or(""),
                                           std::chrono::system_clock::now());
  return std::clamp<milliseconds>(wait.value_or(least), least, kLongest);
}

void RateGate::heard(const net::ResponseHead& head) {
  const auto wait = asked_wait(head);
  if (!wait) return;
  state_.with([&](State& state) {
    std::uniform_int_distribution<std::int64_t> more(0, wait->count() / 4 + 50);
    const auto opens = steady_clock::now() + *wait + milliseconds(more(state.random));
    state.opens = std::max(state.opens, opens);
  });
}

std::optional<milliseconds> RateGate::closed_for() const {
  const auto opens = state_.with([](const State& state) { return state.opens; });
  const auto left = std::chrono::ceil<milliseconds>(opens - steady_clock::now());
  return left.count() > 0 ? std::optional(left) : std::nullopt;
}

bool RateGate::pass(steady_clock::time_point deadline, const std::stop_token& stop) const {
  while (const auto left = closed_for()) {
    if (stop.stop_requested() || steady_clock::now() + *left > deadline) return false;
    pause(stop, *left);
  }
  return true;
}

}  // namespace weightfs::source
