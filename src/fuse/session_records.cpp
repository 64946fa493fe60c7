// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fuse/session_records.hpp"

#include "vfs/incarnations.hpp"

#include <algorithm>
#include <span>

namespace weightfs::fuse {

namespace {

constexpr std::string_view kConfiguration = "configuration ";

bool is_configuration(std::string_view record) {
  return record.starts_with(kConfiguration);
}

/// Of configurations the last one.
std::vector<bool> lasting(std::span<const std::string_view> records) {
  std::vector<bool> keep = vfs::Incarnations::lasting(records);
  bool found = false;
  for (std::size_t i = records.size(); i-- > 0;) {
    if (!is_configuration(records[i])) continue;
    keep[i] = !found;
    found = true;
  }
  return keep;
}

}  // namespace

SessionRecords::SessionRecords(keeper::SessionMemory& memory) : memory_(memory) {
  memory_.compact(lasting);
}

void SessionRecords::append(std::string_view record) {
  if (memory_.compaction_due()) memory_.compact(lasting);
  memory_.append(record);
}

void SessionRecords::remember_configuration(std::string_view text) {
  if (configuration(memory_) == text) return;
  append(std::string(kConfiguration) + std::string(text));
}

std::optional<std::string> SessionRecords::configuration(const keeper::SessionMemory& memory) {
  std::optional<std::string> last;
  for (const std::string& record : memory.records()) {
    if (is_configuration(record)) last = record.substr(kConfiguration.size());
  }
  return last;
}

}  // namespace weightfs::fuse
