// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/single_flight.hpp"
#include "base/synchronized.hpp"
#include "source/hf/hub_client.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

namespace weightfs::source {

/// Where files are to be had, for as long as that is good: a signed URL is asked for anew before
/// it ends, by one of those who read the file. Bounded. Thread-safe.
class Locations {
 public:
  struct Found {
    HubLocation location;
    std::uint64_t number = 0;  ///< which answer it is of
  };
  using Find = std::function<HubLocation(const std::stop_token&)>;

  /// What is known of the file, else what `find` says. Errors of `find`.
  Found get(const std::string& file, const std::stop_token& stop, const Find& find);
  /// This one turned out to be no good: the next get() finds another.
  void forget(const std::string& file, const Found& found);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Known {
    Found found;
    Time until;
  };
  struct State {
    std::map<std::string, Known> files;
    std::uint64_t numbers = 0;
  };
  std::optional<Found> known(const std::string& file) const;

  Synchronized<State> state_;
  SingleFlight<std::string, Found> flights_;
};

}  // namespace weightfs::source
