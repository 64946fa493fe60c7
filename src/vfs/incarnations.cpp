// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/incarnations.hpp"

#include "base/error.hpp"

#include <string>
#include <string_view>

namespace weightfs::vfs {

namespace {

using fetch::Place;

constexpr std::string_view kRetired = "retire";
constexpr std::string_view kShownFromDisk = "shown-disk";
constexpr std::string_view kShownFromMemory = "shown-memory";
constexpr std::string_view kProven = "proven";

std::string_view event_of(Place place) noexcept {
  return place == Place::kDisk ? kShownFromDisk : kShownFromMemory;
}

}  // namespace

Incarnations::Incarnations(SessionLog& log) : log_(log) {
  table_.with([&](Table& table) {
    for (const std::string& record : log_.records()) {
      if (const auto event = parse(record)) apply(table, event->name, event->key);
    }
  });
}

std::optional<Incarnations::Event> Incarnations::parse(std::string_view record) {
  const std::size_t space = record.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view name = record.substr(0, space);
  const bool known =
      name == kRetired || name == kProven || name == kShownFromDisk || name == kShownFromMemory;
  const auto key = known ? Digest::parse(record.substr(space + 1)) : std::nullopt;
  if (!key) return std::nullopt;
  return Event{name, *key};
}

std::vector<bool> Incarnations::lasting(std::span<const std::string_view> records) {
  std::vector<bool> lasting(records.size(), true);
  std::unordered_map<Digest, std::size_t> shown;  // the record of it that counts
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto event = parse(records[i]);
    if (!event) continue;
    if (const auto before = shown.extract(event->key)) lasting[before.mapped()] = false;
    if (event->name == kProven) {
      lasting[i] = false;
    } else if (event->name != kRetired) {
      shown[event->key] = i;
    }
  }
  return lasting;
}

void Incarnations::apply(Table& table, std::string_view event, const Digest& key) {
  if (event == kRetired) ++table.retired[key];
  if (event == kRetired || event == kProven) table.shown.erase(key);
  for (const Place place : {Place::kDisk, Place::kMemory}) {
    if (event == event_of(place)) table.shown[key] = place;
  }
}

void Incarnations::note(std::string_view event, const Digest& key) {
  table_.with([&](Table& table) { apply(table, event, key); });
  log_.append(std::string(event) + ' ' + key.hex());
}

void Incarnations::retire(const Digest& content_key) {
  note(kRetired, content_key);
}

void Incarnations::show(const Digest& content_key, Place place) {
  if (shown(content_key) == place) return;
  // First for the next daemon: whoever finds it in the table gives bytes out.
  const std::string record = std::string(event_of(place)) + ' ' + content_key.hex();
  const auto in_table = [&](Table& table) { apply(table, event_of(place), content_key); };
  try {
    log_.append(record);
  } catch (...) {
    table_.with(in_table);
    throw;
  }
  table_.with(in_table);
}

void Incarnations::prove(const Digest& content_key) noexcept {
  if (!shown(content_key)) return;
  try {
    note(kProven, content_key);
  } catch (const Error&) {
    // The next daemon goes on doubting what was right, and at worst retires it once more.
  }
}

std::optional<Place> Incarnations::shown(const Digest& content_key) const {
  return table_.with([&](const Table& table) -> std::optional<Place> {
    const auto found = table.shown.find(content_key);
    return found == table.shown.end() ? std::nullopt : std::optional(found->second);
  });
}

std::uint32_t Incarnations::count(const Table& table, const Digest& key) {
  const auto found = table.retired.find(key);
  return found == table.retired.end() ? 0 : found->second;
}

}  // namespace weightfs::vfs
