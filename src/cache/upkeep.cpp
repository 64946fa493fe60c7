// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/upkeep.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"

#include <utility>

namespace weightfs::cache {

namespace {

constexpr std::chrono::seconds kInterval{1};

}  // namespace

Upkeep::Upkeep(Parts parts, std::chrono::seconds confirm_after, Log log)
    : parts_(parts), confirm_after_(confirm_after), log_(std::move(log)) {
  thread_ = start_thread("cache-upkeep", [this](std::stop_token stop) {
    do {
      keep_limits();
      confirm();
    } while (pause(stop, kInterval));
  });
}

void Upkeep::keep_limits() const {
  try {
    parts_.cache.keep_limits();
  } catch (const Error& error) {
    log_.error("cannot make room in the store: {}", error.what());
  }
}

void Upkeep::confirm() const {
  if (confirm_after_.count() == 0) return;
  const auto then = std::chrono::duration_cast<std::chrono::seconds>(
      parts_.clock.wall().time_since_epoch() - confirm_after_);
  try {
    for (const std::string& name : parts_.catalog.confirm_since(then.count())) {
      log_.info("{} has stood for long enough: it is rolled back to this revision from now on",
                name);
      telemetry::Event event{.kind = telemetry::EventKind::kConfirm,
                             .name = name,
                             .reason = "it has stood for long enough"};
      const auto model = parts_.catalog.find(name);
      if (model) event.snapshot = model->current.short_hex();
      parts_.events.put(std::move(event));
    }
  } catch (const Error& error) {
    log_.error("cannot confirm what has stood for long enough: {}", error.what());
  }
}

}  // namespace weightfs::cache
