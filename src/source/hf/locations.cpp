// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/locations.hpp"

#include <algorithm>

namespace weightfs::source {

using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kMaxFiles = 4096;
/// How long before its end a signed URL is not begun with any more: a request that runs goes on.
constexpr seconds kEarly{60};
/// Of one that does not say how long it is good, and of the Hub's own URLs.
constexpr seconds kUnsaid{600};

seconds usable(const HubLocation& location) {
  if (!location.lifetime) return kUnsaid;
  const seconds whole = std::max(*location.lifetime, seconds(0));
  return std::min(std::max(whole - kEarly, whole / 2), seconds(std::chrono::hours(24)));
}

}  // namespace

Locations::Found Locations::get(const std::string& file, const std::stop_token& stop,
                                const Find& find) {
  if (auto found = known(file)) return *std::move(found);
  return flights_.get(file, stop, [&] {
    // Somebody may have found it between the two.
    if (auto found = known(file)) return *std::move(found);
    HubLocation location = find(stop);
    const auto until = steady_clock::now() + usable(location);
    return state_.with([&](State& state) {
      if (state.files.size() >= kMaxFiles) {
        std::erase_if(state.files,
                      [](const auto& entry) { return entry.second.until <= steady_clock::now(); });
        if (state.files.size() >= kMaxFiles) state.files.clear();
      }
      Found found{std::move(location), ++state.numbers};
      state.files.insert_or_assign(file, Known{found, until});
      return found;
    });
  });
}

void Locations::forget(const std::string& file, const Found& found) {
  state_.with([&](State& state) {
    const auto at = state.files.find(file);
    if (at != state.files.end() && at->second.found.number == found.number) state.files.erase(at);
  });
}

std::optional<Locations::Found> Locations::known(const std::string& file) const {
  return state_.with([&](const State& state) -> std::optional<Found> {
    const auto at = state.files.find(file);
    if (at == state.files.end() || at->second.until <= steady_clock::now()) return std::nullopt;
    return at->second.found;
  });
}

}  // namespace weightfs::source
