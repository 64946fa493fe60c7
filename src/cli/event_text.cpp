// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/event_text.hpp"

#include "base/quantity.hpp"
#include "cli/printable.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>

namespace weightfs::cli {

namespace {

/// Within what a calendar can be made of: the time comes from another process.
std::string time_text(double seconds) {
  constexpr double kYear9999 = 253402300799;
  if (!(seconds >= 0) || seconds > kYear9999) return "?";
  const auto milliseconds = std::llround(seconds * 1000);
  const auto whole = static_cast<std::time_t>(milliseconds / 1000);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03}", fmt::gmtime(whole), milliseconds % 1000);
}

/// What it is about: the model by its name, else by where it comes from.
std::string subject(const api::Event& event) {
  std::string text = event.name.empty() ? event.source : event.name;
  if (!event.path.empty()) text += (text.empty() || text.ends_with('/') ? "" : "/") + event.path;
  return text;
}

}  // namespace

std::string event_text(const api::Event& event) {
  std::string text = fmt::format(
      "{}  {:<22}", time_text(event.time),
      event.action.empty() ? event.event : fmt::format("{} {}", event.event, event.action));
  if (const std::string about = subject(event); !about.empty()) text += "  " + about;
  if (!event.snapshot.empty()) text += fmt::format("  [{}]", event.snapshot);
  if (!event.lease.empty()) text += "  lease " + event.lease;
  if (event.bytes > 0) text += "  " + readable_size(event.bytes);
  if (!event.consumer.empty()) text += "  by " + event.consumer;
  if (!event.reason.empty()) text += "  (" + event.reason + ")";
  if (event.hit_rate) text += fmt::format("  hit rate {:.1f}%", *event.hit_rate * 100);
  if (event.saved_bytes) text += fmt::format("  saves {}", readable_size(*event.saved_bytes));
  text.erase(text.find_last_not_of(' ') + 1);
  return printable(text);
}

}  // namespace weightfs::cli
