// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/mirror/standing.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace weightfs::source {

namespace {

using std::chrono::seconds;

constexpr std::size_t kMaxFiles = 4096;
constexpr seconds kFirstRest{5};
constexpr seconds kLongestRest{300};

}  // namespace

Standing::Standing(std::size_t sources) {
  state_.with([&](State& state) { state.sources.resize(sources); });
}

std::vector<std::size_t> Standing::order(const Digest& file, Time now) const {
  return state_.with([&](const State& state) {
    const auto known = state.files.find(file);
    const auto blamed = [&](std::size_t source) -> unsigned {
      if (known == state.files.end()) return 0;
      const auto found = known->second.blamed.find(source);
      return found == known->second.blamed.end() ? 0 : found->second;
    };
    std::vector<std::size_t> order(state.sources.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t source) {
      return std::tuple(blamed(source), now < state.sources[source].back, source);
    });
    return order;
  });
}

void Standing::failed(std::size_t source, Time now) {
  state_.with([&](State& state) {
    Of& of = state.sources[source];
    if (now < of.back) return;  // connections that break together are one failure
    const auto rest = kFirstRest * (1U << std::min(of.failures++, 10U));
    of.back = now + std::min<seconds>(rest, kLongestRest);
  });
}

void Standing::worked(std::size_t source) {
  state_.with([&](State& state) { state.sources[source] = {}; });
}

void Standing::served(std::size_t source, const Digest& file) {
  state_.with([&](State& state) { record(state, file).served.insert(source); });
}

void Standing::begin(const Digest& file) {
  state_.with([&](State& state) {
    const auto known = state.files.find(file);
    if (known != state.files.end()) known->second.served.clear();
  });
}

void Standing::refuted(const Digest& file) {
  state_.with([&](State& state) {
    Record& of = record(state, file);
    for (const std::size_t source : of.served) ++of.blamed[source];
    of.served.clear();
  });
}

bool Standing::hopeful(const Digest& file) const {
  return state_.with([&](const State& state) {
    const auto known = state.files.find(file);
    if (known == state.files.end() || known->second.blamed.size() < state.sources.size())
      return true;
    return std::ranges::any_of(known->second.blamed, [](const auto& of) { return of.second < 2; });
  });
}

Standing::Record& Standing::record(State& state, const Digest& file) {
  if (state.files.size() >= kMaxFiles && !state.files.contains(file)) state.files.clear();
  return state.files[file];
}

}  // namespace weightfs::source
