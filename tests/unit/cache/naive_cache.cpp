// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "naive_cache.hpp"

#include <algorithm>
#include <iterator>

namespace weightfs::cache {

using policy::Admission;
using policy::Area;
using policy::Guard;
using snapshot::SnapshotPtr;
using Presence = Stock::Presence;

namespace {

bool is_config(const snapshot::File& file) {
  return file.path.ends_with(".json");
}

}  // namespace

void NaiveCache::know(const SnapshotPtr& snapshot) {
  all[snapshot->key()] = snapshot;
  for (const snapshot::File& file : snapshot->files()) {
    contents_[snapshot->key()][*file.sha256] = file.size;
  }
}

void NaiveCache::restart() {
  refused = evictions = 0;
  kept.clear();
  if (admission == Admission::kNever) references_.clear();
}

bool NaiveCache::is_use(const SnapshotPtr& snapshot, std::size_t file) {
  return !is_config(snapshot->files()[file]) || std::ranges::all_of(snapshot->files(), is_config);
}

bool NaiveCache::known(const Digest& snapshot) const {
  return std::ranges::any_of(
      names, [&](const auto& one) { return one.second.revisions.contains(snapshot); });
}

bool NaiveCache::kept_by_word(const Digest& snapshot) const {
  const auto guard = guard_of(snapshot);
  return guard == Guard::kPinned || guard == Guard::kLeased;
}

std::optional<Guard> NaiveCache::guard_of(const Digest& snapshot) const {
  for (const auto& [text, name] : names) {
    const bool pinned = name.pinned_until && (*name.pinned_until == 0 || now < *name.pinned_until);
    if (pinned && name.current == snapshot) return Guard::kPinned;
  }
  for (const auto& [id, lease] : leases) {
    if (now < lease.until && std::ranges::count(lease.snapshots, snapshot) > 0) {
      return Guard::kLeased;
    }
  }
  if (open.contains(snapshot)) return Guard::kOpen;
  for (const auto& [text, name] : names) {
    if (rollback_window > 0 && name.confirmed == snapshot && name.current != snapshot &&
        now - name.updated <= rollback_window) {
      return Guard::kConfirmed;
    }
  }
  const auto found = all.find(snapshot);
  if (found == all.end() || !known(snapshot)) return std::nullopt;
  for (std::size_t i = 0; i < found->second->files().size(); ++i) {
    if (!is_use(found->second, i)) continue;
    const Digest& content = *found->second->files()[i].sha256;
    if (stock.read(content)) return Guard::kOpen;
    if (stock.presence(content) == Presence::kFilling) return Guard::kFilling;
  }
  return std::nullopt;
}

Area NaiveCache::area_of(const Digest& snapshot) const {
  const auto found = references_.find(snapshot);
  const bool proven = found != references_.end() && found->second.second;
  const bool resident = admission == Admission::kAlways || proven || kept_by_word(snapshot);
  return resident ? Area::kResident : Area::kProbation;
}

bool NaiveCache::is_held(const Digest& snapshot) const {
  return std::ranges::any_of(held_, [&](const Held& one) { return one.snapshot == snapshot; });
}

/// What would go first is first.
std::vector<NaiveCache::Held> NaiveCache::in_order() const {
  std::vector<Held> order;
  for (const Area area : {Area::kProbation, Area::kResident}) {
    std::ranges::copy_if(held_, std::back_inserter(order),
                         [&](const Held& held) { return held.area == area; });
  }
  return order;
}

/// What several have counts with the one of them that goes last.
std::uint64_t NaiveCache::bytes_of(const Digest& snapshot) const {
  std::uint64_t bytes = 0;
  const std::vector<Held> order = in_order();
  for (const auto& [content, size] : contents_of(snapshot)) {
    if (stock.presence(content) == Presence::kNone) continue;
    Digest last;
    for (const Held& held : order) {
      if (contents_of(held.snapshot).contains(content)) last = held.snapshot;
    }
    if (last == snapshot) bytes += size;
  }
  return bytes;
}

std::uint64_t NaiveCache::bytes_in(Area area) const {
  std::uint64_t bytes = 0;
  for (const Held& held : held_) bytes += held.area == area ? bytes_of(held.snapshot) : 0;
  return bytes;
}

std::optional<std::size_t> NaiveCache::tenant_of(const Digest& snapshot) const {
  for (const auto& [text, name] : names) {
    if (!name.revisions.contains(snapshot)) continue;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
      if (text.starts_with(tenants[i].path + "/")) return i;
    }
  }
  return std::nullopt;
}

std::uint64_t NaiveCache::bytes_of_tenant(std::size_t tenant) const {
  std::uint64_t bytes = 0;
  for (const Held& held : held_) {
    if (tenant_of(held.snapshot) == tenant) bytes += bytes_of(held.snapshot);
  }
  return bytes;
}

std::uint64_t NaiveCache::missing(const std::vector<SnapshotPtr>& snapshots) const {
  std::map<Digest, std::uint64_t> wanted;
  for (const SnapshotPtr& snapshot : snapshots) {
    const auto& contents = contents_of(snapshot->key());
    wanted.insert(contents.begin(), contents.end());
  }
  std::uint64_t bytes = 0;
  for (const auto& [content, size] : wanted) {
    if (stock.presence(content) == Presence::kNone) bytes += size;
  }
  return bytes;
}

std::uint64_t NaiveCache::share() const {
  return std::min(limits.capacity.bytes, stock.usage().capacity);
}

std::uint64_t NaiveCache::capacity() const {
  const std::uint64_t reach = used_bytes() + stock.usage().free;
  const std::uint64_t min_free = limits.min_free.bytes;
  return std::min(limits.capacity.bytes, reach > min_free ? reach - min_free : 0);
}

std::set<Digest> NaiveCache::known_contents() const {
  std::set<Digest> contents;
  for (const auto& [key, snapshot] : all) {
    if (!known(key)) continue;
    for (const auto& [content, size] : contents_of(snapshot->key())) contents.insert(content);
  }
  return contents;
}

std::uint64_t NaiveCache::stray_bytes() const {
  const std::set<Digest> wanted = known_contents();
  MemoryStock without = stock;
  return without.remove_but({wanted.begin(), wanted.end()});
}

NaiveCache::Plan NaiveCache::plan(const Claim& claim, std::optional<std::uint64_t> room,
                                  const std::set<Digest>& spared) const {
  Plan plan;
  std::set<Digest> gone;
  const std::vector<Held> order = in_order();
  std::map<Digest, std::uint64_t> bytes_of;
  for (const Held& held : order) bytes_of[held.snapshot] = this->bytes_of(held.snapshot);
  const std::uint64_t used = used_bytes() - stray_bytes() + claim.bytes;
  const auto claimer = this->tenant_of(claim.snapshot);
  const auto bytes_gone = [&](const auto& counts) {
    std::uint64_t bytes = 0;
    for (const Held& held : order) {
      if (gone.contains(held.snapshot) && counts(held)) bytes += bytes_of[held.snapshot];
    }
    return bytes;
  };
  std::map<Digest, std::optional<std::size_t>> tenant_of;
  for (const Held& held : order) tenant_of[held.snapshot] = this->tenant_of(held.snapshot);
  const auto left_of = [&](std::size_t tenant) {
    std::uint64_t bytes = 0;
    for (const Held& held : order) {
      const Digest& key = held.snapshot;
      if (tenant_of[key] == tenant && !gone.contains(key)) bytes += bytes_of[key];
    }
    return bytes;
  };
  // By how much each bound is passed, now that some have gone.
  const auto beyond = [](std::uint64_t has, std::uint64_t may) {
    return has > may ? has - may : 0;
  };
  const auto over_cap = [&] {
    return claimer ? beyond(left_of(*claimer) + claim.bytes, tenants[*claimer].cap.of(share())) : 0;
  };
  const auto lacking = [&] {
    const std::uint64_t freed = bytes_gone([](const Held&) { return true; });
    return beyond(beyond(used, room.value_or(capacity())), freed);
  };
  const auto lacking_on_probation = [&] {
    if (claim.area == Area::kResident) return std::uint64_t{0};
    const auto waiting = [](const Held& held) { return held.area == Area::kProbation; };
    return beyond(beyond(bytes_in(Area::kProbation) + claim.bytes, limits.probation.of(share())),
                  bytes_gone(waiting));
  };
  const auto go = [&](Area area, const auto& wanted, bool own) {
    for (const Held& held : order) {
      if (wanted() == 0) return;
      const Digest& key = held.snapshot;
      if (held.area != area || key == claim.snapshot || gone.contains(key)) continue;
      const auto tenant = tenant_of[key];
      if (own && tenant != claimer) continue;
      const auto guard = spared.contains(key) ? Guard::kLeased : guard_of(key);
      const std::uint64_t bytes = bytes_of[key];
      const bool falls = tenant && tenant != claimer &&
                         beyond(left_of(*tenant), bytes) < tenants[*tenant].floor.of(share());
      if (guard) {
        plan.kept.try_emplace(key, *guard, bytes);
      } else if (falls) {
        plan.kept.try_emplace(key, Guard::kFloor, bytes);
      } else {
        gone.insert(key);
        plan.victims.push_back(key);
      }
    }
  };
  go(Area::kProbation, over_cap, true);
  go(Area::kResident, over_cap, true);
  go(Area::kProbation, [&] { return std::max(lacking(), lacking_on_probation()); }, false);
  if (lacking_on_probation() == 0) go(Area::kResident, lacking, false);
  plan.short_of = std::max({lacking(), lacking_on_probation(), over_cap()});
  return plan;
}

void NaiveCache::touch(const Digest& snapshot, Area area) {
  for (const Held& held : held_) {
    if (held.snapshot == snapshot) area = std::max(area, held.area);
  }
  std::erase_if(held_, [&](const Held& one) { return one.snapshot == snapshot; });
  held_.push_back({snapshot, area});
}

void NaiveCache::evict(const Digest& snapshot) {
  for (const snapshot::File& file : all.at(snapshot)->files()) {
    bool others = false;
    for (const auto& [other, contents] : contents_) {
      if (other == snapshot || !known(other) || !contents.contains(*file.sha256)) continue;
      if (!is_held(other) && guard_of(other)) touch(other, area_of(other));
      others = others || is_held(other);
    }
    if (!others) stock.remove(*file.sha256);
  }
  std::erase_if(held_, [&](const Held& one) { return one.snapshot == snapshot; });
  ++evictions;
}

bool NaiveCache::make_room(const Claim& claim, std::optional<std::uint64_t> room) {
  if (used_bytes() + claim.bytes > room.value_or(capacity())) {
    const std::set<Digest> wanted = known_contents();
    stock.remove_but({wanted.begin(), wanted.end()});
  }
  for (;;) {
    last_ = plan(claim, room);
    if (last_.short_of > 0) return false;
    if (last_.victims.empty()) return true;
    for (const Digest& victim : last_.victims) evict(victim);
  }
}

bool NaiveCache::refuse(const Plan& plan) {
  ++refused;
  kept.clear();
  for (const auto& [key, why] : plan.kept) kept[why.first] += why.second;
  return false;
}

/// Whatever has something in the store is held, and nothing else.
void NaiveCache::look_around() {
  std::erase_if(held_, [&](const Held& one) {
    if (!known(one.snapshot)) return true;
    const auto there = [&](const snapshot::File& file) {
      return stock.presence(*file.sha256) != Presence::kNone;
    };
    return std::ranges::none_of(all.at(one.snapshot)->files(), there);
  });
  // Of each content that is there: who has it, and how often.
  std::map<Digest, std::vector<Digest>> who;
  for (const auto& [key, snapshot] : all) {
    if (!known(key)) continue;
    for (const snapshot::File& file : snapshot->files()) {
      if (stock.presence(*file.sha256) != Presence::kNone) who[*file.sha256].push_back(key);
    }
  }
  std::set<Digest> own;
  for (const auto& [content, keys] : who) {
    if (keys.size() == 1 && !is_held(keys.front())) own.insert(keys.front());
  }
  for (const Digest& key : own) touch(key, area_of(key));
  std::set<Digest> first;
  for (const auto& [content, keys] : who) {
    if (std::ranges::none_of(keys, [&](const Digest& key) { return is_held(key); })) {
      first.insert(keys.front());
    }
  }
  for (const Digest& key : first) touch(key, area_of(key));
}

void NaiveCache::used(const SnapshotPtr& snapshot, std::size_t file, const std::string& consumer) {
  if (!is_use(snapshot, file)) return;
  if (admission != Admission::kNever) {
    const auto [found, first] =
        references_.try_emplace(snapshot->key(), std::pair(consumer, false));
    if (!first && found->second.first != consumer) found->second.second = true;
  }
  const Digest& content = *snapshot->files()[file].sha256;
  const bool complete = stock.presence(content) == Presence::kComplete;
  if (complete || is_held(snapshot->key())) touch(snapshot->key(), area_of(snapshot->key()));
}

NaiveCache::Answer NaiveCache::claim(const SnapshotPtr& snapshot, std::size_t file, int fails) {
  const Digest& key = snapshot->key();
  const Area area = area_of(key);
  if (admission == Admission::kNever && area == Area::kProbation) return Answer::kStreamed;
  if (!is_held(key) || bytes_of(key) == 0) {
    const Plan whole = plan({.snapshot = key, .area = area, .bytes = missing({snapshot})});
    if (whole.short_of > 0) {
      refuse(whole);
      return Answer::kStreamed;
    }
  }
  const Digest& content = *snapshot->files()[file].sha256;
  const std::uint64_t size = snapshot->files()[file].size;
  const Claim claim{.snapshot = key,
                    .area = area,
                    .bytes = stock.presence(content) == Presence::kNone ? size : 0};
  if (!make_room(claim)) {
    refuse(last_);
    return Answer::kStreamed;
  }
  // The more that is asked for first, beyond the file's own size, is more than all there is here.
  Claim more = claim;
  more.bytes = std::max<std::uint64_t>(claim.bytes, 1);
  if (fails > 0 && !make_room(more, used_bytes())) return Answer::kDiskFull;
  if (fails > 1) return Answer::kDiskFull;
  touch(key, area);
  stock.put(content, size, Presence::kFilling);
  return Answer::kKept;
}

bool NaiveCache::fits(const SnapshotPtr& snapshot) const {
  const std::uint64_t bytes = missing({snapshot});
  return bytes == 0 ||
         plan({.snapshot = snapshot->key(), .area = Area::kResident, .bytes = bytes}).short_of == 0;
}

void NaiveCache::prove(const SnapshotPtr& snapshot) {
  references_[snapshot->key()].second = true;
  const auto& contents = contents_of(snapshot->key());
  const bool there = std::ranges::any_of(
      contents, [&](const auto& one) { return stock.presence(one.first) != Presence::kNone; });
  if (there || is_held(snapshot->key())) touch(snapshot->key(), Area::kResident);
}

bool NaiveCache::admit(const SnapshotPtr& snapshot) {
  if (!fits(snapshot)) return false;
  prove(snapshot);
  return true;
}

bool NaiveCache::reserve(const std::vector<SnapshotPtr>& snapshots) {
  std::vector<SnapshotPtr> promised = snapshots;
  std::set<Digest> spared;
  for (const SnapshotPtr& snapshot : snapshots) spared.insert(snapshot->key());
  for (const auto& [key, snapshot] : all) {
    if (known(key) && !spared.contains(key) && kept_by_word(key)) promised.push_back(snapshot);
  }
  const std::uint64_t bytes = missing(promised);
  if (missing(snapshots) > 0 && plan({.bytes = bytes}, {}, spared).short_of > 0) return false;
  if (!std::ranges::all_of(snapshots, [&](const auto& one) { return fits(one); })) return false;
  std::set<Digest> done;
  for (const SnapshotPtr& snapshot : snapshots) {
    if (done.insert(snapshot->key()).second) prove(snapshot);
  }
  return true;
}

void NaiveCache::keep_limits() {
  if (make_room({})) return;
  const Plan why = last_;
  static_cast<void>(make_room({}, capacity() + why.short_of));
  kept.clear();
  for (const auto& [key, reason] : why.kept) kept[reason.first] += reason.second;
}

}  // namespace weightfs::cache
