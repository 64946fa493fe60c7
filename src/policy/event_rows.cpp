// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/event_rows.hpp"

#include "policy/trace_number.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace weightfs::policy {

namespace {

using Json = nlohmann::json;

const std::string* text(const Json& event, const char* member) {
  const auto found = event.find(member);
  return found == event.end() ? nullptr : found->get_ptr<const std::string*>();
}

std::optional<std::chrono::milliseconds> time_of(const Json& event) {
  if (const std::string* const written = text(event, "time")) return trace_time(*written, 1000);
  const auto found = event.find("time");
  if (found == event.end() || !found->is_number()) return std::nullopt;
  return trace_time(found->dump(), 1000);
}

}  // namespace

void read_event(std::string_view line, std::uint64_t number, TraceBuilder& trace) {
  if (line.empty()) return;
  const Json event = Json::parse(line, nullptr, false);
  if (!event.is_object()) {
    trace.skip(number, "is not a JSON object");
    return;
  }
  const std::string* const what = text(event, "event");
  if (what == nullptr) {
    trace.skip(number, "has no event");
    return;
  }
  if (*what != "reference") return;
  const std::string* const snapshot = text(event, "snapshot");
  if (snapshot == nullptr || snapshot->empty()) {
    trace.skip(number, "has no snapshot");
    return;
  }
  TraceRow row{.line = number, .artifact = *snapshot, .time = time_of(event)};
  if (event.contains("consumer")) {
    const std::string* const consumer = text(event, "consumer");
    row.consumer = consumer == nullptr ? std::string_view{} : *consumer;
  }
  if (const std::string* const node = text(event, "node")) row.node = *node;
  if (const auto bytes = event.find("bytes"); bytes != event.end() && bytes->is_number_unsigned()) {
    row.bytes = bytes->get<std::uint64_t>();
  }
  trace.add(row);
}

}  // namespace weightfs::policy
