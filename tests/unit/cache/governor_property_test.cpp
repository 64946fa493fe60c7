// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors

// Whatever is done in whatever order, a Governor does what naive_cache.hpp says.

#include "../store/store_fixture.hpp"
#include "base/error.hpp"
#include "cache/governor.hpp"
#include "catalog/catalog.hpp"
#include "memory_stock.hpp"
#include "naive_cache.hpp"
#include "random_models.hpp"

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace weightfs::cache {
namespace {

using policy::Area;
using policy::Guard;
using snapshot::Snapshot;
using snapshot::SnapshotPtr;
using Presence = Stock::Presence;

constexpr std::uint64_t kDisk = 150;
constexpr std::int64_t kWindow = 60;
constexpr std::array<const char*, 8> kNames = {"a/1", "a/2", "b/1", "b/2",
                                               "b/3", "c/1", "c/2", "d"};

/// In memory, where there is a filesystem for that: the catalog flushes what it writes.
std::filesystem::path for_state() {
  const std::filesystem::path memory = "/dev/shm";
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
}

/// A Governor and what it is to do, told the same.
class Pair {
 public:
  Pair(std::uint64_t seed, policy::Admission admission) : random_(seed) {
    options_ = {.admission = admission,
                .limits = {.capacity = {.bytes = 110},
                           .min_free = {.bytes = 18},
                           .probation = {.percent = 35}},
                .rollback_window = std::chrono::seconds(kWindow),
                .tenants = some_tenants(static_cast<unsigned>(seed)),
                .use_log = directory_.path() / "uses"};
    naive_.admission = admission;
    naive_.rollback_window = kWindow;
    naive_.tenants = options_.tenants;
    naive_.now = now();
    restart();
    for (std::size_t i = 0; i < kNames.size() * 2; ++i)
      snapshots_.push_back(random_model(i, random_));
    for (const SnapshotPtr& snapshot : snapshots_) naive_.know(snapshot);
    for (std::size_t i = 0; i < kNames.size(); ++i) add(kNames.at(i), snapshots_[i]);
  }

  void restart() {
    governor_.reset();
    catalog_.reset();
    catalog_ = std::make_unique<catalog::Catalog>(directory_.path(), clock_, Log::silent());
    governor_ = std::make_unique<Governor>(
        Governor::Parts{.stock = stock_, .catalog = *catalog_, .open = open_, .clock = clock_},
        options_, Log::silent());
    naive_.limits = options_.limits;
    naive_.restart();
    last_evictions_ = 0;
  }

  void step() {
    while (files_.size() > 3) close_a_file();
    stock_.gone.clear();
    naive_.stock.gone.clear();
    naive_.look_around();
    const GovernorStatus before = governor_->status();
    const std::vector<Digest> guarded = guarded_contents();
    const unsigned draw = below(100);
    const bool by_hand = draw == 96;
    what_ = fmt::format("{}", draw);
    if (draw < 42) {
      open_and_fetch(before);
    } else if (draw < 58) {
      end_a_fill();
    } else if (draw < 64) {
      close_a_file();
    } else if (draw < 68) {
      hold_or_let_go();
    } else if (draw < 71) {
      pin_or_unpin();
    } else if (draw < 74) {
      lease_or_not();
    } else if (draw < 77) {
      show_another();
    } else if (draw < 85) {
      clock_.advance(std::chrono::seconds(below(40)));
      naive_.now = now();
    } else if (draw < 87) {
      const std::uint64_t others = below(40);
      stock_.set_others(others);
      naive_.stock.set_others(others);
    } else if (draw < 89) {
      governor_->keep_limits();
      naive_.keep_limits();
    } else if (draw < 92) {
      admit();
    } else if (draw < 94) {
      reserve();
    } else if (draw < 96) {
      add_or_remove();
    } else if (draw < 97) {
      take_away();
    } else if (draw < 98) {
      naive_.tenants = options_.tenants = some_tenants(below(3));
      governor_->set_tenants(options_.tenants);
    } else {
      options_.limits.capacity.bytes = 70 + below(70);
      restart();
    }
    naive_.look_around();
    compare();
    for (const Digest& content : guarded) {
      INFO(what_);
      REQUIRE((by_hand || stock_.presence(content) == Presence::kComplete));
    }
  }

  /// What happened, and how often.
  struct Counts {
    int kept = 0;
    int streamed = 0;
    int full = 0;
    int admitted = 0;
    int too_much = 0;
    std::uint64_t evictions = 0;
    std::map<Guard, int> reasons;
  };
  Counts counts;

 private:
  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }
  [[nodiscard]] std::int64_t now() const {
    return std::chrono::duration_cast<std::chrono::seconds>(clock_.wall().time_since_epoch())
        .count();
  }

  const SnapshotPtr* a_known_one() {
    const SnapshotPtr& any = snapshots_[below(static_cast<unsigned>(snapshots_.size()))];
    return naive_.known(any->key()) ? &any : nullptr;
  }
  NaiveCache::Name* a_name(std::string& text) {
    text = kNames.at(below(kNames.size()));
    const auto found = naive_.names.find(text);
    return found == naive_.names.end() ? nullptr : &found->second;
  }
  template <class T>
  T any_of(const std::vector<T>& all) {
    return all[below(static_cast<unsigned>(all.size()))];
  }

  [[nodiscard]] std::vector<Digest> guarded_contents() const {
    std::vector<Digest> contents;
    for (const auto& [key, snapshot] : naive_.all) {
      if (!naive_.known(key) || !naive_.guard_of(key)) continue;
      for (const snapshot::File& file : snapshot->files()) {
        const bool weights = file.path.ends_with(".safetensors");
        if (weights && stock_.presence(*file.sha256) == Presence::kComplete) {
          contents.push_back(*file.sha256);
        }
      }
    }
    return contents;
  }

  void add(const std::string& name, const SnapshotPtr& snapshot) {
    catalog_->add(name, snapshot->source(), snapshot);
    naive_.names[name] = {.current = snapshot->key(),
                          .confirmed = {},
                          .revisions = {snapshot->key()},
                          .updated = now(),
                          .pinned_until = {}};
  }

  /// One that opens a file, which is fetched where it is not there.
  void open_and_fetch(const GovernorStatus& before) {
    const SnapshotPtr* known = a_known_one();
    if (known == nullptr) return;
    const SnapshotPtr& snapshot = *known;
    const std::size_t file = below(static_cast<unsigned>(snapshot->files().size()));
    const std::string consumer = fmt::format("pod {}", below(4));
    what_ += fmt::format(": {} opens {}", consumer, snapshot->source());
    open_.opened(snapshot->key());
    naive_.open.insert(snapshot->key());
    files_.push_back(snapshot->key());
    governor_->used(snapshot, file, consumer);
    naive_.used(snapshot, file, consumer);

    const Digest& content = *snapshot->files()[file].sha256;
    const Presence presence = stock_.presence(content);
    if (presence == Presence::kComplete || presence == Presence::kFilling) return;
    const unsigned luck = below(30);
    const int fails = luck == 0 ? 2 : luck < 3 ? 1 : 0;
    const NaiveCache::Answer expected = naive_.claim(snapshot, file, fails);
    const std::uint64_t size = snapshot->files()[file].size;
    int takes = 0;
    NaiveCache::Answer answer{};
    try {
      const auto take = [&] {
        if (++takes <= fails) throw Error(Errc::kNoSpace, "the disk is full");
        stock_.put(content, size, Presence::kFilling);
      };
      const bool keeps =
          governor_->claim({.snapshot = snapshot, .file_index = file, .source = nullptr}, take);
      answer = keeps ? NaiveCache::Answer::kKept : NaiveCache::Answer::kStreamed;
    } catch (const Error& error) {
      REQUIRE(error.code() == Errc::kNoSpace);
      answer = NaiveCache::Answer::kDiskFull;
    }
    INFO(what_);
    REQUIRE(answer == expected);
    counts.kept += answer == NaiveCache::Answer::kKept ? 1 : 0;
    counts.streamed += answer == NaiveCache::Answer::kStreamed ? 1 : 0;
    counts.full += answer == NaiveCache::Answer::kDiskFull ? 1 : 0;
    if (answer != NaiveCache::Answer::kDiskFull) check_bounds(before, answer, snapshot->key());
  }

  /// What holds whatever the model says: of the limits, and of the floors of others. What a tenant
  /// has may come to count with somebody else who has it, too.
  void check_bounds(const GovernorStatus& before, NaiveCache::Answer answer, const Digest& key) {
    const GovernorStatus after = governor_->status();
    if (answer == NaiveCache::Answer::kKept) REQUIRE(after.budget.used <= after.budget.capacity);
    REQUIRE(before.tenants.size() == after.tenants.size());
    const auto mine = naive_.tenant_of(key);
    for (std::size_t i = 0; i < before.tenants.size(); ++i) {
      if (i == mine) continue;
      std::map<Digest, std::uint64_t> has;
      for (const auto& [other, snapshot] : naive_.all) {
        if (naive_.tenant_of(other) != i) continue;
        for (const snapshot::File& file : snapshot->files()) {
          if (stock_.presence(*file.sha256) != Presence::kNone) has[*file.sha256] = file.size;
        }
      }
      std::uint64_t bytes = 0;
      for (const auto& [content, size] : has) bytes += size;
      REQUIRE(bytes >= std::min(before.tenants[i].bytes, before.tenants[i].floor));
    }
  }

  void end_a_fill() {
    const std::vector<Digest> filling = stock_.with(Presence::kFilling);
    if (filling.empty()) return;
    const Digest content = any_of(filling);
    constexpr std::array kEnds = {Presence::kNone, Presence::kPart, Presence::kPart};
    const unsigned luck = below(10);
    const Presence then = luck < kEnds.size() ? kEnds.at(luck) : Presence::kComplete;
    stock_.end_fill(content, then);
    naive_.stock.end_fill(content, then);
    if (then == Presence::kNone) governor_->stock_changed();
  }

  void close_a_file() {
    if (files_.empty()) return;
    const std::size_t which = below(static_cast<unsigned>(files_.size()));
    open_.closed(files_[which]);
    naive_.open.erase(naive_.open.find(files_[which]));
    files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  /// Whoever reads a blob: a verification, or a file that the kernel serves by itself.
  void hold_or_let_go() {
    if (!held_.empty() && below(2) == 0) {
      const std::size_t which = below(static_cast<unsigned>(held_.size()));
      stock_.let_go(held_[which]);
      naive_.stock.let_go(held_[which]);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
      return;
    }
    const std::vector<Digest> complete = stock_.with(Presence::kComplete);
    if (complete.empty() || held_.size() > 3) return;
    const Digest content = any_of(complete);
    if (stock_.lingers(content)) return;
    stock_.hold(content);
    naive_.stock.hold(content);
    held_.push_back(content);
  }

  void pin_or_unpin() {
    std::string text;
    NaiveCache::Name* name = a_name(text);
    if (name == nullptr) return;
    if (name->pinned_until || below(2) == 0) {
      catalog_->unpin(text);
      name->pinned_until.reset();
      return;
    }
    const std::int64_t until = below(2) == 0 ? 0 : now() + 1 + below(80);
    catalog_->pin(text, {.until = until});
    name->pinned_until = until;
  }

  void lease_or_not() {
    const std::string id = fmt::format("job-{}", below(3));
    const SnapshotPtr* known = a_known_one();
    if (known == nullptr || below(2) == 0) {
      static_cast<void>(catalog_->leases().remove(id));
      naive_.leases.erase(id);
      return;
    }
    const Digest key = (*known)->key();
    const std::int64_t until = now() + 1 + below(80);
    catalog_->leases().put({.id = id,
                            .artifacts = {{.text = "a model", .snapshot = key}},
                            .not_before = now(),
                            .until = until});
    naive_.leases[id] = {.snapshots = {key}, .until = until};
  }

  void show_another() {
    std::string text;
    NaiveCache::Name* name = a_name(text);
    if (name == nullptr) return;
    const unsigned luck = below(4);
    if (luck < 2) {
      const SnapshotPtr& next = snapshots_[below(static_cast<unsigned>(snapshots_.size()))];
      catalog_->flip(text, next);
      if (!name->confirmed && name->current != next->key()) name->confirmed = name->current;
      name->current = next->key();
      name->revisions.insert(next->key());
      name->updated = now();
    } else if (luck == 2) {
      catalog_->confirm(text);
      name->confirmed = name->current;
    } else if (name->confirmed && name->confirmed != name->current) {
      catalog_->rollback(text);
      name->current = *name->confirmed;
      name->updated = now();
    }
  }

  void admit() {
    const SnapshotPtr* known = a_known_one();
    if (known != nullptr) check_admitted([&] { governor_->admit(*known); }, naive_.admit(*known));
  }

  void reserve() {
    const SnapshotPtr* one = a_known_one();
    const SnapshotPtr* other = a_known_one();
    if (one == nullptr || other == nullptr) return;
    const std::vector<SnapshotPtr> both = {*one, *other};
    check_admitted([&] { governor_->reserve(both); }, naive_.reserve(both));
  }

  template <class Call>
  void check_admitted(const Call& call, bool expected) {
    bool fits = true;
    try {
      call();
    } catch (const Error& error) {
      REQUIRE(error.code() == Errc::kNoSpace);
      fits = false;
    }
    REQUIRE(fits == expected);
    ++(fits ? counts.admitted : counts.too_much);
  }

  void add_or_remove() {
    std::string text;
    NaiveCache::Name* name = a_name(text);
    if (name == nullptr) return add(text, any_of(snapshots_));
    if (naive_.names.size() < 4) return;
    catalog_->remove(text);
    naive_.names.erase(text);
    // What is fetched for nobody is given up.
    for (const Presence presence : {Presence::kFilling, Presence::kPart}) {
      for (const Digest& content : stock_.with(presence)) give_up(content);
    }
  }
  void give_up(const Digest& content) {
    for (const auto& [key, snapshot] : naive_.all) {
      for (const snapshot::File& file : snapshot->files()) {
        if (naive_.known(key) && file.sha256 == content) return;
      }
    }
    stock_.end_fill(content, Presence::kNone);
    naive_.stock.end_fill(content, Presence::kNone);
  }

  /// By hand, whoever needs it.
  void take_away() {
    const std::vector<Digest> complete = stock_.with(Presence::kComplete);
    if (complete.empty()) return;
    const Digest content = any_of(complete);
    stock_.remove(content);
    naive_.stock.remove(content);
    governor_->stock_changed();
  }

  void compare() {
    INFO(what_);
    const GovernorStatus status = governor_->status();
    REQUIRE(stock_ == naive_.stock);
    REQUIRE(status.budget.used == naive_.used_bytes());
    REQUIRE(status.budget.capacity == naive_.capacity());
    REQUIRE(status.probation_bytes == naive_.bytes_in(Area::kProbation));
    REQUIRE(status.resident_bytes == naive_.bytes_in(Area::kResident));
    REQUIRE(status.refused == naive_.refused);
    REQUIRE(status.kept == naive_.kept);
    REQUIRE(status.evictions == naive_.evictions);
    REQUIRE(status.tenants.size() == naive_.tenants.size());
    for (std::size_t i = 0; i < status.tenants.size(); ++i) {
      REQUIRE(status.tenants[i].bytes == naive_.bytes_of_tenant(i));
    }
    counts.evictions += status.evictions - last_evictions_;
    last_evictions_ = status.evictions;
    for (const auto& [guard, bytes] : status.kept) ++counts.reasons[guard];
  }

  std::mt19937_64 random_;
  store::TemporaryDirectory directory_{for_state()};
  store::ManualClock clock_;
  OpenSnapshots open_;
  MemoryStock stock_{kDisk};
  GovernorOptions options_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<Governor> governor_;
  NaiveCache naive_{kDisk};
  std::vector<SnapshotPtr> snapshots_;
  std::vector<Digest> files_;  ///< snapshots of the files that are open
  std::vector<Digest> held_;   ///< contents that somebody reads
  std::string what_;
  std::uint64_t last_evictions_ = 0;
};

struct Course {
  std::uint64_t seeds = 0;
  int steps = 0;
  bool restarts = false;  ///< before every step
  policy::Admission admission = policy::Admission::kSecondReference;
};

Pair::Counts run(const Course& course) {
  Pair::Counts all;
  for (std::uint64_t seed = 0; seed < course.seeds; ++seed) {
    Pair pair(seed, course.admission);
    for (int step = 0; step < course.steps; ++step) {
      CAPTURE(seed, step);
      if (course.restarts) pair.restart();
      pair.step();
    }
    all.kept += pair.counts.kept;
    all.streamed += pair.counts.streamed;
    all.full += pair.counts.full;
    all.admitted += pair.counts.admitted;
    all.too_much += pair.counts.too_much;
    all.evictions += pair.counts.evictions;
    for (const auto& [guard, times] : pair.counts.reasons) all.reasons[guard] += times;
  }
  return all;
}

TEST_CASE("a governor does what the naive model says, whatever comes") {
  Pair::Counts counts = run({.seeds = 16, .steps = 1000});
  CHECK(counts.kept > 400);
  CHECK(counts.streamed > 100);
  CHECK(counts.full > 20);
  CHECK(counts.admitted > 100);
  CHECK(counts.too_much > 20);
  CHECK(counts.evictions > 100);
  for (const Guard guard : {Guard::kOpen, Guard::kPinned, Guard::kLeased, Guard::kFilling,
                            Guard::kConfirmed, Guard::kFloor}) {
    CAPTURE(policy::name(guard));
    CHECK(counts.reasons[guard] > 20);
  }
}

TEST_CASE("so it does with any admission") {
  run({.seeds = 2, .steps = 800, .admission = policy::Admission::kAlways});
  run({.seeds = 2, .steps = 800, .admission = policy::Admission::kNever});
}

TEST_CASE("a restart before every step changes nothing of what a governor does") {
  const Pair::Counts counts = run({.seeds = 3, .steps = 700, .restarts = true});
  CHECK(counts.kept > 60);
  CHECK(counts.evictions > 5);
}

}  // namespace
}  // namespace weightfs::cache
