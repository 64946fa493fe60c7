// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/governor.hpp"

#include "base/error.hpp"
#include "governor_node.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace weightfs::cache {
namespace {

using Catch::Matchers::ContainsSubstring;
using policy::Admission;
using policy::Guard;
using snapshot::SnapshotPtr;
using store::put;
using store::random_bytes;

TEST_CASE("the least recently used snapshot goes, whole, before more is written") {
  Node node(100 * kKiB);
  const auto a =
      node.model("a", {{.seed = 100, .size = 20 * kKiB}, {.seed = 101, .size = 20 * kKiB}});
  const auto b = node.model("b", 40 * kKiB);
  const auto c = node.model("c", 30 * kKiB);
  REQUIRE(node.use(a, "x"));
  REQUIRE(node.use(b, "x"));
  REQUIRE(node.use(a, "x"));
  REQUIRE(node.use(c, "x"));
  CHECK(node.has(a));
  CHECK_FALSE(node.has(b));
  CHECK(node.has(c));
  CHECK(node.listener.gone == std::vector<Digest>{*b->files()[0].sha256});
  const GovernorStatus status = node.governor().status();
  CHECK(status.evictions == 1);
  CHECK(status.evicted_bytes == 40 * kKiB);
  CHECK(status.budget.used == 70 * kKiB);
  CHECK(status.resident_bytes == 70 * kKiB);
}

TEST_CASE("what is open or pinned stays, and a file that does not fit then is streamed") {
  Node node(100 * kKiB);
  const auto open = node.model("open", 40 * kKiB);
  const auto pinned = node.model("pinned", 40 * kKiB);
  const auto more = node.model("more", 40 * kKiB);
  REQUIRE(node.use(open, "x"));
  REQUIRE(node.use(pinned, "x"));
  node.open.opened(open->key());
  node.catalog().pin("pinned", {});
  CHECK_FALSE(node.use(more, "x"));
  CHECK(node.has(open));
  CHECK(node.has(pinned));
  const GovernorStatus status = node.governor().status();
  CHECK(status.refused == 1);
  CHECK(status.kept ==
        std::map<Guard, std::uint64_t>{{Guard::kOpen, 40 * kKiB}, {Guard::kPinned, 40 * kKiB}});
  node.open.closed(open->key());
  CHECK(node.use(more, "x"));
  CHECK_FALSE(node.has(open));
}

TEST_CASE("of a snapshot that cannot fit nothing is kept, and nothing goes for it") {
  Node node(100 * kKiB);
  const auto small = node.model("small", 30 * kKiB);
  const auto large =
      node.model("large", {{.seed = 50, .size = 60 * kKiB}, {.seed = 51, .size = 60 * kKiB}});
  REQUIRE(node.use(small, "x"));
  CHECK_FALSE(node.use(large, "x"));
  CHECK(node.store().usage().blobs == 1);
  CHECK(node.has(small));
  try {
    node.governor().admit(large);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kNoSpace);
    CHECK_THAT(error.what(), ContainsSubstring("123 kB"));
  }
}

TEST_CASE("a blob that two snapshots share goes with the second") {
  Node node(100 * kKiB);
  const Node::Part base{.seed = 9, .size = 30 * kKiB};
  const auto a = node.model("a", {base, {.seed = 10, .size = 10 * kKiB}});
  const auto b = node.model("b", {base, {.seed = 11, .size = 10 * kKiB}});
  REQUIRE(node.use(a, "x"));
  REQUIRE(node.use(b, "x"));
  REQUIRE(node.use(node.model("c", 55 * kKiB), "x"));
  CHECK(node.has(b));
  CHECK(node.governor().status().evicted_bytes == 10 * kKiB);
  REQUIRE(node.use(node.model("d", 95 * kKiB), "x"));
  CHECK(node.governor().status().evicted_bytes == (10 + 40 + 55) * kKiB);
  CHECK(node.store().usage().blobs == 1);
}

TEST_CASE("what two snapshots share counts with the one that was used last, and is not lost") {
  Node node(100 * kKiB);
  const Node::Part base{.seed = 9, .size = 40 * kKiB};
  const auto a = node.model("a", {base, {.seed = 10, .size = 10 * kKiB}});
  const auto b = node.model("b", {base, {.seed = 11, .size = 10 * kKiB}});
  REQUIRE(node.use(a, "x"));
  REQUIRE(node.use(b, "x"));
  SECTION("in the order in which they came") {
    REQUIRE(node.use(node.model("c", 45 * kKiB), "x"));
    CHECK_FALSE(node.has(a));
    CHECK(node.has(b));
  }
  SECTION("and after another use") {
    REQUIRE(node.use(a, "x"));
    REQUIRE(node.use(node.model("c", 45 * kKiB), "x"));
    CHECK(node.has(a));
    CHECK_FALSE(node.has(b));
  }
  SECTION("with one that was added when all was there already") {
    const auto c = node.model("c", {base});
    REQUIRE(node.use(c, "x"));
    REQUIRE(node.use(node.model("d", 60 * kKiB), "x"));
    CHECK(node.has(c));
    CHECK(node.governor().status().evicted_bytes == 20 * kKiB);
  }
  const GovernorStatus status = node.governor().status();
  CHECK(status.resident_bytes == status.budget.used);
}

TEST_CASE("a second consumer makes a resident, the same one again does not") {
  Node node(100 * kKiB, Admission::kSecondReference);
  const auto a = node.model("a", {{.seed = 1, .size = 10 * kKiB}, {.seed = 2, .size = 10 * kKiB}});
  REQUIRE(node.use(a, "pod-1"));
  REQUIRE(node.use(a, "pod-1"));
  CHECK(node.governor().status().probation_bytes == 20 * kKiB);
  REQUIRE(node.use(a, "pod-2"));
  CHECK(node.governor().status().probation_bytes == 0);
  CHECK(node.governor().status().resident_bytes == 20 * kKiB);
}

TEST_CASE("what was asked for once leaves its area when that needs the room, and is remembered") {
  Node node(100 * kKiB, Admission::kSecondReference);  // 25 KiB for probation
  const auto a = node.model("a", 20 * kKiB);
  const auto b = node.model("b", 20 * kKiB);
  const auto large = node.model("large", 30 * kKiB);
  REQUIRE(node.use(a, "pod-1"));
  REQUIRE(node.use(b, "pod-1"));
  CHECK_FALSE(node.has(a));
  CHECK(node.has(b));
  CHECK_FALSE(node.use(large, "pod-1"));  // than the area
  node.start();
  REQUIRE(node.use(a, "pod-2"));
  CHECK(node.governor().status().resident_bytes == 20 * kKiB);
  REQUIRE(node.use(large, "pod-2"));
  CHECK(node.has(b));
}

TEST_CASE("what a person asks for is admitted at once") {
  Node node(100 * kKiB, Admission::kSecondReference);
  const auto a = node.model("a", 60 * kKiB);
  node.governor().admit(a);
  REQUIRE(node.fetch(a, 0));
  CHECK(node.governor().status().resident_bytes == 60 * kKiB);
}

TEST_CASE("what shares all its blobs keeps them when it was used and their first owner goes") {
  Node node(100 * kKiB);
  const auto shared = Node::Part{.seed = 77, .size = 30 * kKiB};
  const SnapshotPtr first = node.model("first", {shared, {.seed = 78, .size = 10 * kKiB}});
  const SnapshotPtr second = node.model("second", {shared});
  CHECK(node.use(first, "a"));
  CHECK(node.use(second, "b"));
  CHECK(node.use(node.model("large", 65 * kKiB), "c"));
  CHECK_FALSE(node.has(first));
  CHECK(node.has(second));
}

TEST_CASE("a blob that somebody has open gives nothing back, so another goes") {
  Node node(100 * kKiB);
  const SnapshotPtr held = node.model("held", 40 * kKiB);
  const SnapshotPtr other = node.model("other", 40 * kKiB);
  CHECK(node.use(held, "a"));
  CHECK(node.use(other, "a"));
  {
    const auto blob = node.store().find(*held->files()[0].sha256);
    CHECK(node.use(node.model("next", 50 * kKiB), "a"));
    CHECK(node.has(held));
    CHECK_FALSE(node.has(other));
  }
  CHECK(node.use(node.model("last", 50 * kKiB), "a"));
  CHECK_FALSE(node.has(held));
}

TEST_CASE("a disk that is full before its numbers say so gets room by an eviction") {
  Node node(100 * kKiB);
  const SnapshotPtr old = node.model("old", 20 * kKiB);
  const SnapshotPtr recent = node.model("recent", 20 * kKiB);
  CHECK(node.use(old, "a"));
  CHECK(node.use(recent, "a"));
  const SnapshotPtr next = node.model("next", 10 * kKiB);
  int takes = 0;
  CHECK(node.governor().claim({.snapshot = next, .file_index = 0, .source = nullptr}, [&] {
    if (++takes == 1) throw Error(Errc::kNoSpace, "the disk is full");
  }));
  CHECK(takes == 2);
  CHECK_FALSE(node.has(old));
  CHECK(node.has(recent));

  const auto never = [] { throw Error(Errc::kNoSpace, "the disk is full"); };
  CHECK_THROWS_AS(
      node.governor().claim({.snapshot = next, .file_index = 0, .source = nullptr}, never), Error);
}

TEST_CASE("a disk that is full while a file is written gets room by one eviction, if it needs it") {
  Node node(10 << 20);
  const SnapshotPtr old = node.model("old", 20 * kKiB);
  const SnapshotPtr older = node.model("older", 2 << 20);
  const SnapshotPtr filling = node.model("filling", 10 * kKiB);
  CHECK(node.use(older, "a"));
  CHECK(node.use(old, "a"));
  CHECK(node.use(filling, "a"));
  int writes = 0;
  int succeeds_at = 1;
  const auto write = [&] {
    if (++writes < succeeds_at) throw Error(Errc::kNoSpace, "the disk is full");
  };
  const auto write_again = [&] {
    writes = 0;
    node.governor().write_again({.snapshot = filling, .file_index = 0, .source = nullptr}, write);
  };
  write_again();  // somebody else has made room meanwhile
  CHECK(node.has(older));

  succeeds_at = 2;
  write_again();
  CHECK(writes == 2);
  CHECK_FALSE(node.has(older));
  CHECK(node.has(old));
  CHECK(node.governor().status().evictions == 1);

  write_again();  // little may be enough
  CHECK_FALSE(node.has(old));

  // There is nothing left: what is being written is no victim.
  CHECK_THROWS_AS(write_again(), Error);
  CHECK(writes == 1);
  CHECK(node.has(filling));
}

TEST_CASE("with admission never only what a person asks for is kept") {
  Node node(100 * kKiB, Admission::kNever);
  const SnapshotPtr read = node.model("read", 10 * kKiB);
  const SnapshotPtr warmed = node.model("warmed", 10 * kKiB);
  node.governor().admit(warmed);
  for (const char* const consumer : {"a", "b", "c"}) {
    CHECK_FALSE(node.use(read, consumer));
    CHECK(node.use(warmed, consumer));
  }
}

TEST_CASE("a tenant's floor survives its neighbour's flood, and its cap holds") {
  Node node(100 * kKiB);
  node.set_tenants({{.name = "quiet", .floor = {.percent = 40}, .path = "quiet"},
                    {.name = "loud", .cap = {.bytes = 70 * kKiB}, .path = "loud/"}});
  node.start();
  const SnapshotPtr mine = node.model("quiet/a", 40 * kKiB);
  CHECK(node.use(mine, "x"));
  for (int i = 0; i < 8; ++i) {
    CHECK(node.use(node.model("loud/" + std::to_string(i), 30 * kKiB), "y"));
    CHECK(node.has(mine));
  }
  CHECK_FALSE(node.use(node.model("loud/large", 71 * kKiB), "y"));
  CHECK_FALSE(node.use(node.model("nobodys", 61 * kKiB), "z"));
  const GovernorStatus status = node.governor().status();
  CHECK(status.kept.at(Guard::kFloor) == 40 * kKiB);
  REQUIRE(status.tenants.size() == 2);
  CHECK(status.tenants[0].bytes == 40 * kKiB);
  CHECK(status.tenants[0].floor == 40 * kKiB);
  CHECK(status.tenants[1].bytes == 60 * kKiB);
  CHECK(status.tenants[1].cap == 70 * kKiB);
  CHECK(status.budget.used == 100 * kKiB);
}

TEST_CASE("files that no model has go before anything else") {
  Node node(100 * kKiB);
  const SnapshotPtr kept = node.model("kept", 40 * kKiB);
  CHECK(node.use(kept, "a"));
  put(node.store(), random_bytes(50 * kKiB, 1001));
  node.start();
  CHECK(node.use(node.model("new", 55 * kKiB), "a"));
  CHECK(node.has(kept));
  CHECK(node.store().usage().bytes == 95 * kKiB);
  CHECK(node.governor().status().evicted_bytes == 50 * kKiB);
}

TEST_CASE("the order of use outlives a daemon that could not open the store") {
  Node node(100 * kKiB);
  const SnapshotPtr old = node.model("old", 40 * kKiB);
  const SnapshotPtr recent = node.model("recent", 40 * kKiB);
  CHECK(node.use(old, "a"));
  CHECK(node.use(recent, "a"));
  CHECK(node.use(old, "a"));
  node.live_without_store();
  node.start();
  CHECK(node.use(node.model("new", 50 * kKiB), "a"));
  CHECK(node.has(old));
  CHECK_FALSE(node.has(recent));
}

TEST_CASE("what was taken out behind its back is counted anew") {
  Node node(100 * kKiB);
  const SnapshotPtr removed = node.model("removed", 60 * kKiB);
  CHECK(node.use(removed, "a"));
  node.store().remove(*removed->files()[0].sha256);
  node.catalog().remove("removed");
  node.governor().stock_changed();
  CHECK(node.governor().status().resident_bytes == 0);
  CHECK(node.use(node.model("next", 90 * kKiB), "a"));
  CHECK(node.governor().status().resident_bytes == 90 * kKiB);
}

TEST_CASE("what nobody is known to have used is on probation, unless all is forgotten") {
  Node node(100 * kKiB, Admission::kSecondReference);
  const SnapshotPtr looked_at = node.model("looked at", 10 * kKiB);
  const Node::Part part{.seed = 1, .size = 10 * kKiB};
  put(node.store(), random_bytes(part.size, part.seed));
  SECTION("known to have been used by nobody") {
    node.start();
    CHECK(node.governor().status().probation_bytes == 10 * kKiB);
  }
  SECTION("forgotten") {
    node.forget_uses();
    node.start();
    CHECK(node.governor().status().resident_bytes == 10 * kKiB);
  }
}

TEST_CASE("what a name would be rolled back to stays within its window") {
  Node node(100 * kKiB);
  node.set_rollback_window(std::chrono::hours(1));
  const SnapshotPtr old = node.model("m", 40 * kKiB);
  const SnapshotPtr next = node.model("next", 40 * kKiB);
  CHECK(node.use(old, "a"));
  CHECK(node.use(next, "a"));
  node.catalog().flip("m", next);
  CHECK(node.use(node.model("other", 50 * kKiB), "a"));
  CHECK(node.has(old));
  CHECK_FALSE(node.has(next));
  CHECK_FALSE(node.use(node.model("third", 61 * kKiB), "a"));
  CHECK(node.governor().status().kept.at(Guard::kConfirmed) == 40 * kKiB);

  node.advance(std::chrono::hours(2));
  CHECK(node.use(node.model("fourth", 61 * kKiB), "a"));
  CHECK_FALSE(node.has(old));
}

namespace {

/// What a person or a scheduler does with a model at some steps; the same on every node.
void keep_or_let_go(Node& node, const std::string& name, const SnapshotPtr& snapshot,
                    std::uint64_t random) {
  catalog::Leases& leases = node.catalog().leases();
  switch (random % 8) {
    case 0:
      return node.catalog().pin(name, {});
    case 1:
      return node.catalog().unpin(name);
    case 2:
      (void)leases.put({.id = name,
                        .artifacts = {{.text = name, .snapshot = snapshot->key()}},
                        .not_before = 1,
                        .until = std::int64_t{1} << 40});
      return;
    case 3:
      return static_cast<void>(leases.remove(name));
    default:
      return;
  }
}

}  // namespace

TEST_CASE("a restart at every step changes nothing: uses, pins, leases and accounts") {
  Node steady(100 * kKiB, Admission::kSecondReference);
  Node restarted(100 * kKiB, Admission::kSecondReference);
  std::vector<SnapshotPtr> here;
  std::vector<SnapshotPtr> there;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "m" + std::to_string(i);
    here.push_back(steady.model(name, (10 + 3 * i) * kKiB));
    there.push_back(restarted.model(name, (10 + 3 * i) * kKiB));
  }
  std::uint64_t random = 7;
  std::set<Guard> reasons;
  for (int step = 0; step < 200; ++step) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::size_t which = (random >> 33) % here.size();
    const std::size_t other = (random >> 37) % here.size();
    const std::string name = "m" + std::to_string(other);
    const std::string consumer = "pod-" + std::to_string((random >> 50) % 3);
    restarted.start();
    CAPTURE(step, which, consumer);
    keep_or_let_go(steady, name, here[other], random >> 41);
    keep_or_let_go(restarted, name, there[other], random >> 41);
    REQUIRE(steady.use(here[which], consumer) == restarted.use(there[which], consumer));
    for (std::size_t i = 0; i < here.size(); ++i) {
      REQUIRE(steady.has(here[i]) == restarted.has(there[i]));
    }
    const GovernorStatus left = steady.governor().status();
    const GovernorStatus right = restarted.governor().status();
    REQUIRE(left.probation_bytes == right.probation_bytes);
    REQUIRE(left.resident_bytes == right.resident_bytes);
    REQUIRE(left.budget.used == right.budget.used);
    REQUIRE(left.budget.used <= left.budget.capacity);
    for (const auto& [guard, bytes] : left.kept) reasons.insert(guard);
  }
  CHECK(reasons.contains(Guard::kPinned));
  CHECK(reasons.contains(Guard::kLeased));
}

TEST_CASE("when the limits are tighter than what is there, as much goes as can") {
  Node node(100 * kKiB);
  const auto a = node.model("a", 40 * kKiB);
  const auto b = node.model("b", 40 * kKiB);
  REQUIRE(node.use(a, "x"));
  REQUIRE(node.use(b, "x"));
  node.set_capacity(30 * kKiB);
  node.start();
  node.open.opened(b->key());
  node.governor().keep_limits();
  CHECK_FALSE(node.has(a));
  CHECK(node.has(b));
  node.open.closed(b->key());
  node.governor().keep_limits();
  CHECK(node.store().usage().blobs == 0);
}

}  // namespace
}  // namespace weightfs::cache
