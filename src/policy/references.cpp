// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/references.hpp"

#include <utility>

namespace weightfs::policy {

namespace {

/// FNV-1a (64 bits): it is written down, so it must not depend on the library or the process.
std::uint64_t stable_hash(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace

References::Seen References::refer(const Digest& snapshot, std::string_view consumer) {
  const std::uint64_t who = stable_hash(consumer);
  Record* const record = touch(snapshot);
  if (record == nullptr) {
    add({.snapshot = snapshot, .first_consumer = who});
    return Seen::kFirst;
  }
  if (record->proven) return Seen::kProven;
  if (record->first_consumer == who) return Seen::kAgain;
  record->proven = true;
  return Seen::kSecond;
}

void References::prove(const Digest& snapshot) {
  if (Record* const record = touch(snapshot)) {
    record->proven = true;
  } else {
    add({.snapshot = snapshot, .proven = true});
  }
}

bool References::proven(const Digest& snapshot) const {
  const auto found = places_.find(snapshot);
  return found != places_.end() && found->second->proven;
}

References::Record References::record(const Digest& snapshot) const {
  const auto found = places_.find(snapshot);
  return found == places_.end() ? Record{.snapshot = snapshot} : *found->second;
}

void References::forget(const Digest& snapshot) {
  const auto found = places_.find(snapshot);
  if (found == places_.end()) return;
  order_.erase(found->second);
  places_.erase(found);
}

void References::restore(const Record& record) {
  if (Record* const known = touch(record.snapshot)) {
    *known = record;
  } else {
    add(record);
  }
}

References::Record* References::touch(const Digest& snapshot) {
  const auto found = places_.find(snapshot);
  if (found == places_.end()) return nullptr;
  order_.splice(order_.end(), order_, found->second);
  return &*found->second;
}

void References::add(const Record& record) {
  if (places_.size() == most_) {
    places_.erase(order_.front().snapshot);
    order_.pop_front();
  }
  places_.emplace(record.snapshot, order_.insert(order_.end(), record));
}

}  // namespace weightfs::policy
