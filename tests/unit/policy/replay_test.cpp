// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/replay.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

using namespace weightfs::policy;
using namespace std::chrono_literals;
using Catch::Approx;

namespace {

/// Each letter is an artifact; consumers take turns unless `consumers` names one for each.
Trace trace_of(std::string_view letters, std::string_view consumers = {}) {
  Trace trace;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    TraceReference reference;
    reference.artifact = static_cast<std::uint32_t>(letters[i] - 'a');
    if (!consumers.empty()) reference.consumer = static_cast<std::uint32_t>(consumers[i] - 'a');
    reference.time = std::chrono::seconds(i);
    trace.references.push_back(reference);
  }
  trace.artifacts = 26;
  trace.consumers = consumers.empty() ? 0 : 26;
  trace.has_times = true;
  return trace;
}

Trace random_trace(unsigned seed, std::uint32_t artifacts, std::size_t length) {
  std::mt19937 random(seed);
  Trace trace;
  for (std::size_t i = 0; i < length; ++i) {
    TraceReference reference;
    // Squared, so that some are much more popular.
    const std::uint64_t drawn = random() % (artifacts * artifacts);
    while (reference.artifact * reference.artifact < drawn) ++reference.artifact;
    reference.artifact %= artifacts;
    reference.consumer = static_cast<std::uint32_t>(random() % 5);
    reference.bytes = 1 + reference.artifact % 7;
    trace.references.push_back(reference);
  }
  trace.artifacts = artifacts;
  trace.consumers = 5;
  trace.has_sizes = true;
  return trace;
}

std::uint64_t hits(const Trace& trace, ReplayPolicy policy, std::uint64_t capacity,
                   const ReplayOptions& options = {}) {
  return Replay(trace, options).run(policy, capacity).hits;
}

/// The most hits that any choice at all can have, with unit sizes, found by trying them all.
std::uint64_t best_possible(const Trace& trace, std::size_t capacity) {
  std::vector<std::pair<std::set<std::uint32_t>, std::uint64_t>> reached{{{}, 0}};
  for (const TraceReference& reference : trace.references) {
    std::map<std::set<std::uint32_t>, std::uint64_t> next;
    const auto reach = [&](const std::set<std::uint32_t>& state, std::uint64_t count) {
      auto& best = next[state];
      best = std::max(best, count);
    };
    for (const auto& [state, count] : reached) {
      if (state.contains(reference.artifact)) {
        reach(state, count + 1);
        continue;
      }
      reach(state, count);
      auto with = state;
      with.insert(reference.artifact);
      if (with.size() <= capacity) reach(with, count);
      for (const std::uint32_t victim : state) {
        auto other = with;
        other.erase(victim);
        reach(other, count);
      }
    }
    reached.assign(next.begin(), next.end());
  }
  return std::ranges::max(reached, {}, [](const auto& entry) { return entry.second; }).second;
}

}  // namespace

TEST_CASE("a replay counts references, hits, bytes and evictions") {
  Trace trace = trace_of("abacab", "xyxxyx");
  for (TraceReference& reference : trace.references) reference.bytes = 10 + reference.artifact;
  const ReplayResult result = Replay(trace, {.sizes = Sizes::kOfTrace}).run(ReplayPolicy::kLru, 22);
  CHECK(result.references == 6);
  CHECK(result.hits == 2);  // a, a; b was evicted for c
  CHECK(result.bytes == 10 + 11 + 10 + 12 + 10 + 11);
  CHECK(result.pulled_bytes == 10 + 11 + 12 + 11);
  CHECK(result.byte_hit_rate() == Approx(20.0 / 64));
  CHECK(result.evictions == 2);
  CHECK(result.repeated == 1);
  CHECK(result.repeated_hits == 1);
}

TEST_CASE("lru keeps what was used, fifo what came last, never nothing") {
  const Trace trace = trace_of("abacadaeafa");
  CHECK(hits(trace, ReplayPolicy::kLru, 2) == 5);
  CHECK(hits(trace, ReplayPolicy::kFifo, 2) == 3);
  CHECK(hits(trace, ReplayPolicy::kNever, 2) == 0);
}

TEST_CASE("second-reference keeps what two consumers use while one scans") {
  //                          a is used by x and y; then x alone goes through the others
  const Trace trace = trace_of("aabcdefghia", "xyxxxxxxxxx");
  CHECK(hits(trace, ReplayPolicy::kSecondReference, 3) == 2);
  CHECK(hits(trace, ReplayPolicy::kLru, 3) == 1);
}

TEST_CASE("a consumer that comes back alone finds one artifact on probation, of two in turn none") {
  CHECK(hits(trace_of("aaa", "xxx"), ReplayPolicy::kSecondReference, 4) == 2);
  CHECK(hits(trace_of("abab", "xxxx"), ReplayPolicy::kSecondReference, 4) == 0);
  CHECK(hits(trace_of("ababab", "xxyyxx"), ReplayPolicy::kSecondReference, 4) == 3);
}

TEST_CASE("a scheduler's lookahead spares what it knows to be needed") {
  const Trace trace = trace_of("abcab");
  CHECK(hits(trace, ReplayPolicy::kLru, 2) == 0);
  CHECK(hits(trace, ReplayPolicy::kLookahead, 2, {.lookahead = std::int64_t{1}}) == 1);
  CHECK(hits(trace, ReplayPolicy::kLookahead, 2, {.lookahead = 1s}) == 1);
  CHECK(hits(trace, ReplayPolicy::kLookahead, 2, {.lookahead = std::int64_t{0}}) == 0);
}

TEST_CASE("what is larger than the capacity is pulled past it, and nothing goes for it") {
  Trace trace = trace_of("abba");
  trace.references[1].bytes = trace.references[2].bytes = 100;
  for (const ReplayPolicy policy : replay_policies()) {
    const ReplayResult result = Replay(trace, {.sizes = Sizes::kOfTrace}).run(policy, 10);
    CAPTURE(name(policy));
    CHECK(result.evictions == 0);
    CHECK(result.hits == (policy == ReplayPolicy::kNever ? 0 : 1));
  }
}

TEST_CASE("belady has as many hits as any choice can have") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const Trace trace = random_trace(seed, 6, 30);
    for (const std::size_t capacity : {1U, 2U, 3U}) {
      CHECK(hits(trace, ReplayPolicy::kBelady, capacity) == best_possible(trace, capacity));
    }
  }
}

TEST_CASE(
    "no policy has more hits than belady, and full knowledge makes lookahead nearly as good") {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const Trace trace = random_trace(seed, 40, 3000);
    for (const Placement placement : {Placement::kRandom, Placement::kRendezvous}) {
      const Replay replay(trace,
                          {.nodes = 3, .placement = placement, .lookahead = std::int64_t{3000}});
      for (const std::uint64_t capacity : {1U, 4U, 12U}) {
        CAPTURE(seed, capacity);
        const std::uint64_t bound = replay.run(ReplayPolicy::kBelady, capacity).hits;
        for (const ReplayPolicy policy : replay_policies()) {
          CHECK(replay.run(policy, capacity).hits <= bound);
        }
        CHECK(replay.run(ReplayPolicy::kLookahead, capacity).hits >=
              replay.run(ReplayPolicy::kLru, capacity).hits);
      }
    }
  }
}

TEST_CASE("every policy keeps its books: hits and pulled bytes are what the references were") {
  const Trace trace = random_trace(1, 40, 2000);
  for (const Sizes sizes : {Sizes::kUnit, Sizes::kOfTrace}) {
    const Replay replay(trace, {.nodes = 2, .placement = Placement::kHolder, .sizes = sizes});
    for (const ReplayPolicy policy : replay_policies()) {
      CAPTURE(name(policy));
      const ReplayResult result = replay.run(policy, 20);
      CHECK(result.references == 2000);
      CHECK(result.pulled_bytes <= result.bytes);
      if (sizes == Sizes::kUnit) CHECK(result.pulled_bytes == result.references - result.hits);
      CHECK(result.evictions <= result.references - result.hits);
      CHECK(result.hits == replay.run(policy, 20).hits);
    }
  }
}

TEST_CASE("what each node sees is decided by the placement") {
  const Trace trace = trace_of("abababab");
  CHECK(hits(trace, ReplayPolicy::kLru, 1, {.nodes = 2, .placement = Placement::kHolder}) == 6);

  Trace recorded = trace;
  for (std::size_t i = 0; i < 8; ++i) recorded.references[i].node = i < 4 ? 0 : 1;
  CHECK(hits(recorded, ReplayPolicy::kLru, 2, {.nodes = 2, .placement = Placement::kRecorded}) ==
        4);

  const auto rendezvous = place(random_trace(1, 100, 5000), Placement::kRendezvous, 4);
  const auto fewer = place(random_trace(1, 100, 5000), Placement::kRendezvous, 3);
  for (std::size_t i = 0; i < rendezvous.size(); ++i) {
    if (rendezvous[i] != 3) REQUIRE(rendezvous[i] == fewer[i]);
  }
  std::vector<int> landed(4);
  for (const std::uint32_t node : place(random_trace(1, 100, 5000), Placement::kRandom, 4)) {
    ++landed[node];
  }
  for (const int count : landed) CHECK(std::abs(count - 1250) < 150);
}

TEST_CASE("full nodes are given new artifacts in turn by the holder placement") {
  const Trace trace = trace_of("abcdcd");
  const Replay replay(trace, {.nodes = 2, .placement = Placement::kHolder});
  CHECK(replay.run(ReplayPolicy::kLru, 1).hits == 2);  // c and d displace a and b, not each other
}

TEST_CASE("the next reference is that to the same artifact on the same node") {
  constexpr std::int64_t kNone = kNoNextReference;
  const Trace trace = trace_of("abaab");
  CHECK(next_references(trace, {}) == std::vector<std::int64_t>{2, 4, 3, kNone, kNone});
  CHECK(next_references(trace, {0, 0, 1, 0, 1}) ==
        std::vector<std::int64_t>{3, kNone, kNone, kNone, kNone});
}
