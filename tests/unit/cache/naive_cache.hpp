// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cache/limits.hpp"
#include "cache/tenants.hpp"
#include "memory_stock.hpp"
#include "policy/references.hpp"
#include "policy/room.hpp"
#include "snapshot/snapshot.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weightfs::cache {

/// What a Governor with its catalog is to do, told as plainly as can be: nothing is kept that can
/// be counted anew, and whoever looks for something looks at everything. Speed is no aim.
class NaiveCache {
  using SnapshotPtr = snapshot::SnapshotPtr;

 public:
  struct Name {
    Digest current;
    std::optional<Digest> confirmed;
    std::set<Digest> revisions;
    std::int64_t updated = 0;
    std::optional<std::int64_t> pinned_until;  ///< 0: for good
  };
  struct Lease {
    std::vector<Digest> snapshots;
    std::int64_t until = 0;
  };

  explicit NaiveCache(std::uint64_t disk) : stock(disk) {}

  // What others say or do.
  policy::Admission admission = policy::Admission::kSecondReference;
  Limits limits;
  std::int64_t rollback_window = 0;
  std::vector<Tenant> tenants;
  std::int64_t now = 0;
  std::map<Digest, SnapshotPtr> all;  ///< that any name may ever have, see know()
  std::map<std::string, Name> names;
  std::map<std::string, Lease> leases;
  std::multiset<Digest> open;  ///< snapshots of open files
  MemoryStock stock;

  void know(const SnapshotPtr& snapshot);
  /// Where nothing is admitted but by somebody's word, that word is for one run; nothing else goes.
  void restart();

  // The calls of a Governor.
  void used(const SnapshotPtr& snapshot, std::size_t file, const std::string& consumer);
  enum class Answer { kKept, kStreamed, kDiskFull };
  /// `fails`: how often the disk says that it is full. Where the answer is kKept, the file's fill
  /// is to begin.
  Answer claim(const SnapshotPtr& snapshot, std::size_t file, int fails);
  bool admit(const SnapshotPtr& snapshot);
  bool reserve(const std::vector<SnapshotPtr>& snapshots);
  void keep_limits();
  /// Files that came or went without it, and names that did.
  void look_around();

  // What is found out.
  [[nodiscard]] bool is_held(const Digest& snapshot) const;
  [[nodiscard]] bool known(const Digest& snapshot) const;
  [[nodiscard]] std::optional<policy::Guard> guard_of(const Digest& snapshot) const;
  [[nodiscard]] std::optional<std::size_t> tenant_of(const Digest& snapshot) const;
  [[nodiscard]] std::uint64_t bytes_of(const Digest& snapshot) const;
  [[nodiscard]] std::uint64_t bytes_in(policy::Area area) const;
  [[nodiscard]] std::uint64_t bytes_of_tenant(std::size_t tenant) const;
  [[nodiscard]] std::uint64_t capacity() const;
  [[nodiscard]] std::uint64_t used_bytes() const { return MemoryStock::used(stock.usage()); }
  std::uint64_t refused = 0;
  std::map<policy::Guard, std::uint64_t> kept;
  std::uint64_t evictions = 0;

 private:
  struct Held {
    Digest snapshot;
    policy::Area area;
  };
  struct Plan {
    std::vector<Digest> victims;
    std::uint64_t short_of = 0;
    std::map<Digest, std::pair<policy::Guard, std::uint64_t>> kept;
  };
  struct Claim {
    Digest snapshot;
    policy::Area area = policy::Area::kResident;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] static bool is_use(const SnapshotPtr& snapshot, std::size_t file);
  [[nodiscard]] bool kept_by_word(const Digest& snapshot) const;
  [[nodiscard]] policy::Area area_of(const Digest& snapshot) const;
  [[nodiscard]] std::vector<Held> in_order() const;
  [[nodiscard]] std::uint64_t missing(const std::vector<SnapshotPtr>& snapshots) const;
  [[nodiscard]] std::uint64_t share() const;
  [[nodiscard]] std::set<Digest> known_contents() const;
  [[nodiscard]] std::uint64_t stray_bytes() const;
  [[nodiscard]] Plan plan(const Claim& claim, std::optional<std::uint64_t> room = {},
                          const std::set<Digest>& spared = {}) const;
  bool make_room(const Claim& claim, std::optional<std::uint64_t> room = {});
  bool refuse(const Plan& plan);
  [[nodiscard]] bool fits(const SnapshotPtr& snapshot) const;
  void touch(const Digest& snapshot, policy::Area area);
  void prove(const SnapshotPtr& snapshot);
  void evict(const Digest& snapshot);

  [[nodiscard]] const std::map<Digest, std::uint64_t>& contents_of(const Digest& snapshot) const {
    return contents_.at(snapshot);
  }

  std::map<Digest, std::map<Digest, std::uint64_t>> contents_;  ///< sizes by content, by snapshot
  std::vector<Held> held_;                                      ///< least recently used first
  std::map<Digest, std::pair<std::string, bool>> references_;   ///< the first, and whether proven
  Plan last_;                                                   ///< why make_room made none
};

}  // namespace weightfs::cache
