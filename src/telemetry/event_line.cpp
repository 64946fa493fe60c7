// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "telemetry/event_line.hpp"

#include "snapshot/byte_text.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>

namespace weightfs::telemetry {

namespace {

using Json = nlohmann::ordered_json;
using Milliseconds = std::chrono::milliseconds;

constexpr const char* kBase64 = "_base64";

/// The members that are text, once, for reading and for writing.
template <class Value, class Visit>
void each_text(Value& event, const Visit& visit) {
  visit("action", event.action);
  visit("name", event.name);
  visit("snapshot", event.snapshot);
  visit("path", event.path);
  visit("source", event.source);
  visit("consumer", event.consumer);
  visit("lease", event.lease);
  visit("reason", event.reason);
}

void read_text(const Json& json, const std::string& key, std::string& text) {
  if (const auto found = json.find(key); found != json.end() && found->is_string()) {
    text = found->get<std::string>();
  } else if (const auto coded = json.find(key + kBase64);
             coded != json.end() && coded->is_string()) {
    text = snapshot::from_base64(coded->get<std::string>()).value_or("");
  }
}

}  // namespace

std::string line_of(const Event& event) {
  const auto time = std::chrono::floor<Milliseconds>(event.time.time_since_epoch());
  Json json;
  json["seq"] = event.sequence;
  json["time"] = static_cast<double>(time.count()) / 1000;
  json["event"] = name(event.kind);
  each_text(event, [&](const std::string& key, const std::string& text) {
    if (text.empty()) return;
    if (snapshot::is_utf8(text)) {
      json[key] = text;
    } else {
      json[key + kBase64] = snapshot::to_base64(text);
    }
  });
  json["bytes"] = event.bytes;
  if (event.hit_rate) json["hit_rate"] = *event.hit_rate;
  if (event.saved_bytes) json["saved_bytes"] = *event.saved_bytes;
  return json.dump();
}

std::optional<Event> event_of(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto sequence = json.find("seq");
  const auto time = json.find("time");
  const auto what = json.find("event");
  if (sequence == json.end() || !sequence->is_number_unsigned()) return std::nullopt;
  if (time == json.end() || !time->is_number() || what == json.end() || !what->is_string()) {
    return std::nullopt;
  }
  const auto kind = kind_of(what->get_ref<const std::string&>());
  // Further away no clock can be, and what counts nanoseconds would overflow.
  constexpr double kMostSeconds = 9e9;
  const double seconds = time->get<double>();
  if (!kind || !(std::abs(seconds) < kMostSeconds)) return std::nullopt;
  Event event{
      .kind = *kind,
      .sequence = sequence->get<std::uint64_t>(),
      .time = std::chrono::system_clock::time_point(Milliseconds(std::llround(seconds * 1000)))};
  each_text(event, [&](const std::string& key, std::string& text) { read_text(json, key, text); });
  const auto number = [&](const char* key) -> std::optional<std::uint64_t> {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
    return found->get<std::uint64_t>();
  };
  event.bytes = number("bytes").value_or(0);
  event.saved_bytes = number("saved_bytes");
  if (const auto rate = json.find("hit_rate"); rate != json.end() && rate->is_number()) {
    event.hit_rate = rate->get<double>();
  }
  return event;
}

}  // namespace weightfs::telemetry
