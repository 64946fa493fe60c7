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
      const std::string_view text(record);
      const std::size_t space = text.find(' ');
      if (space == std::string_view::npos) continue;
      const auto key = Digest::parse(text.substr(space + 1));
      if (key) apply(table, text.substr(0, space), *key);
    }
  });
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
