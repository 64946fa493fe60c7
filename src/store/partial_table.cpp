// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/partial_table.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

#include <utility>

namespace weightfs::store {

void PartialTable::set(Table& table, Entry& entry, bool on_disk, std::uint64_t size) {
  if (entry.on_disk) table.bytes -= entry.size;
  entry.on_disk = on_disk;
  entry.size = size;
  if (on_disk) table.bytes += size;
}

void PartialTable::add(const PartialKey& key, std::uint64_t size) {
  table_.with([&](Table& table) { set(table, table.entries[key], true, size); });
}

PartialUse PartialTable::use(const PartialKey& key) const {
  return table_.with([&](const Table& table) {
    const auto found = table.entries.find(key);
    if (found == table.entries.end()) return PartialUse::kNone;
    if (found->second.claimed) return PartialUse::kFilling;
    return found->second.on_disk ? PartialUse::kIdle : PartialUse::kNone;
  });
}

std::uint64_t PartialTable::bytes() const {
  return table_.with([](const Table& table) { return table.bytes; });
}

PartialTable::Claim::Claim(PartialTable& table, const PartialKey& key) : table_(&table), key_(key) {
  table_->table_.with([&](Table& locked) {
    Entry& entry = locked.entries[key_];
    if (entry.claimed) {
      throw Error(Errc::kBusy, fmt::format("the partial blob {} is being filled", key_.hex()));
    }
    entry.claimed = true;
  });
}

std::vector<PartialKey> PartialTable::all_idle() const {
  return table_.with([](const Table& table) {
    std::vector<PartialKey> idle;
    for (const auto& [key, entry] : table.entries) {
      if (entry.on_disk && !entry.claimed) idle.push_back(key);
    }
    return idle;
  });
}

PartialTable::Claim::Claim(Claim&& other) noexcept
    : table_(std::exchange(other.table_, nullptr)), key_(other.key_) {
}

PartialTable::Claim::~Claim() {
  if (table_ == nullptr) return;
  table_->table_.with([&](Table& table) {
    const auto found = table.entries.find(key_);
    found->second.claimed = false;
    if (!found->second.on_disk) table.entries.erase(found);
  });
}

void PartialTable::Claim::keep(std::uint64_t size) {
  table_->table_.with([&](Table& table) { set(table, table.entries.at(key_), true, size); });
}

void PartialTable::Claim::forget() {
  table_->table_.with([&](Table& table) { set(table, table.entries.at(key_), false, 0); });
}

}  // namespace weightfs::store
