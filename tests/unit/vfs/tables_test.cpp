// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "vfs/complete_nodes.hpp"
#include "vfs/consumer.hpp"
#include "vfs/hit_ledger.hpp"
#include "vfs/incarnations.hpp"
#include "vfs/last_errors.hpp"
#include "vfs/node_id.hpp"
#include "vfs/tree_table.hpp"

#include <catch2/catch_test_macros.hpp>

#include <unistd.h>
#include <array>
#include <limits>
#include <random>
#include <vector>

using weightfs::Digest;
using weightfs::Errc;
using weightfs::Error;
using namespace weightfs::vfs;

namespace {

class MemoryLog final : public SessionLog {
 public:
  void append(std::string_view record) override {
    if (full) throw Error(Errc::kNoSpace, "the log is full");
    records_.emplace_back(record);
  }
  [[nodiscard]] std::vector<std::string> records() const override { return records_; }
  /// Leaves out what no longer matters.
  void compact() {
    const std::vector<std::string_view> all(records_.begin(), records_.end());
    const std::vector<bool> keep = Incarnations::lasting(all);
    std::vector<std::string> lasting;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (keep[i]) lasting.push_back(records_[i]);
    }
    records_ = std::move(lasting);
  }

  bool full = false;

 private:
  std::vector<std::string> records_;
};

}  // namespace

TEST_CASE("a node id gives back what it was made of") {
  const NodeId node(0xABCDEF, NodeId::kMaxIndex, 8191, true);
  CHECK(node.tree() == 0xABCDEF);
  CHECK(node.index() == NodeId::kMaxIndex);
  CHECK(node.incarnation() == 8191);
  CHECK(node.complete());
  CHECK(NodeId(node.value()) == node);
  CHECK(kRootNode == NodeId(0, 0, 0, true));
  CHECK(NodeId(1, 2, 3, false).value() + 1 == NodeId(1, 2, 3, true).value());
}

TEST_CASE("trees keep their numbers over a restart of the daemon") {
  MemoryLog log;
  const TreeTable::Tree view{TreeTable::Kind::kView, "org/na me\n", Digest::of("k")};
  std::uint32_t number = 0;
  {
    TreeTable table(log);
    CHECK(table.number_of({TreeTable::Kind::kNamespace, "", {}}) == 0);
    CHECK(table.number_of({TreeTable::Kind::kNamespace, "org", {}}) == 1);
    number = table.number_of(view);
    CHECK(table.number_of(view) == number);
  }
  TreeTable successor(log);
  REQUIRE(successor.find(number));
  CHECK(*successor.find(number) == view);
  CHECK(successor.number_of(view) == number);
  CHECK(successor.number_of({TreeTable::Kind::kSnapshots, ".snapshots", {}}) == number + 1);
  CHECK_FALSE(successor.find(number + 2));
}

TEST_CASE("an incarnation never goes down, also when a digest is learned and after a restart") {
  MemoryLog log;
  const Digest unlearned = Digest::of("validator");
  const Digest learned = Digest::of("content");
  {
    Incarnations incarnations(log);
    CHECK(incarnations.sum(unlearned) == 0);
    incarnations.retire(unlearned);
    CHECK(incarnations.sum(unlearned) == 1);
    CHECK(incarnations.sum(unlearned, learned) == 1);
    incarnations.retire(learned);
  }
  const Incarnations successor(log);
  CHECK(successor.sum(unlearned, learned) == 2);
}

TEST_CASE("what was shown is known to the next daemon until it is proven or retired") {
  MemoryLog log;
  const Digest disk = Digest::of("disk");
  const Digest memory = Digest::of("memory");
  const Digest proven = Digest::of("proven");
  const Digest retired = Digest::of("retired");
  {
    Incarnations incarnations(log);
    incarnations.show(disk, weightfs::fetch::Place::kMemory);
    incarnations.show(disk, weightfs::fetch::Place::kDisk);
    incarnations.show(memory, weightfs::fetch::Place::kMemory);
    const std::size_t records = log.records().size();
    incarnations.show(memory, weightfs::fetch::Place::kMemory);
    incarnations.prove(Digest::of("never shown"));
    CHECK(log.records().size() == records);
    incarnations.show(proven, weightfs::fetch::Place::kDisk);
    incarnations.prove(proven);
    incarnations.show(retired, weightfs::fetch::Place::kDisk);
    incarnations.retire(retired);
    CHECK(incarnations.shown(retired) == std::nullopt);
  }
  const Incarnations successor(log);
  CHECK(successor.shown(disk) == weightfs::fetch::Place::kDisk);
  CHECK(successor.shown(memory) == weightfs::fetch::Place::kMemory);
  CHECK(successor.shown(proven) == std::nullopt);
  CHECK(successor.shown(retired) == std::nullopt);
  CHECK(successor.sum(retired) == 1);
  CHECK(successor.sum(disk, memory, proven) == 0);
}

TEST_CASE("fills that were proven leave nothing in a compacted log") {
  MemoryLog log;
  Incarnations incarnations(log);
  TreeTable trees(log);
  const Digest key = Digest::of("key");
  const std::size_t others = log.records().size();
  for (int fill = 0; fill < 100; ++fill) {
    incarnations.show(key, weightfs::fetch::Place::kMemory);
    incarnations.show(key, weightfs::fetch::Place::kDisk);
    incarnations.prove(key);
  }
  CHECK(log.records().size() == others + 300);
  log.compact();
  CHECK(log.records().size() == others);
}

TEST_CASE("a compacted log says the same to a successor, wherever it is compacted") {
  std::mt19937_64 random(7);
  MemoryLog log;
  std::array<Digest, 5> keys;
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = Digest::of(std::to_string(i));
  for (int step = 0; step < 400; ++step) {
    {
      Incarnations incarnations(log);
      TreeTable trees(log);
      const Digest& key = keys[random() % keys.size()];
      switch (random() % 5) {
        case 0:
          incarnations.show(key, weightfs::fetch::Place::kDisk);
          break;
        case 1:
          incarnations.show(key, weightfs::fetch::Place::kMemory);
          break;
        case 2:
          incarnations.prove(key);
          break;
        case 3:
          incarnations.retire(key);
          break;
        default:
          trees.number_of({TreeTable::Kind::kView, std::to_string(step), key});
      }
    }
    MemoryLog compacted = log;
    compacted.compact();
    const Incarnations before(log);
    const Incarnations after(compacted);
    for (const Digest& key : keys) {
      REQUIRE(after.shown(key) == before.shown(key));
      REQUIRE(after.sum(key) == before.sum(key));
    }
    const TreeTable trees_before(log);
    const TreeTable trees_after(compacted);
    for (std::uint32_t number = 0; trees_before.find(number); ++number) {
      REQUIRE(trees_after.find(number) == trees_before.find(number));
    }
    if (random() % 10 == 0) log = compacted;
  }
  CHECK(log.records().size() < 300);
}

TEST_CASE("when the log is full, all of it still counts for this daemon") {
  MemoryLog log;
  Incarnations incarnations(log);
  const Digest shown = Digest::of("shown");
  const Digest proven = Digest::of("proven");
  incarnations.show(proven, weightfs::fetch::Place::kDisk);
  log.full = true;
  CHECK_THROWS_AS(incarnations.show(shown, weightfs::fetch::Place::kDisk), Error);
  CHECK(incarnations.shown(shown) == weightfs::fetch::Place::kDisk);
  incarnations.prove(proven);
  CHECK(incarnations.shown(proven) == std::nullopt);
  CHECK_THROWS_AS(incarnations.retire(shown), Error);
  CHECK(incarnations.sum(shown) == 1);
}

TEST_CASE("the nodes that were shown as complete are told once when their blob goes") {
  CompleteNodes nodes;
  nodes.remember(Digest::of("x"), NodeId(5));
  nodes.remember(Digest::of("x"), NodeId(5));
  nodes.remember(Digest::of("x"), NodeId(7));
  nodes.remember(Digest::of("y"), NodeId(9));
  CHECK(nodes.take(Digest::of("x")) == std::vector<NodeId>{NodeId(5), NodeId(7)});
  CHECK(nodes.take(Digest::of("x")).empty());
  CHECK(nodes.take(Digest::of("y")) == std::vector<NodeId>{NodeId(9)});
}

TEST_CASE("a complete file is one hit per consumer however often it is opened") {
  HitLedger ledger;
  ledger.open_complete("pod-a", 7, 100);
  ledger.open_complete("pod-a", 7, 100);
  ledger.open_complete("pod-b", 7, 100);
  ledger.open_complete("pod-a", 8, 1);
  ledger.open_incomplete();
  const Counters counters = ledger.counters(3);
  CHECK(counters.hits == 3);
  CHECK(counters.hit_bytes == 201);
  CHECK(counters.misses == 1);
  CHECK(counters.opens == 5);
  CHECK(counters.open_files == 3);
}

TEST_CASE("a consumer is the unified cgroup, else the first named one") {
  CHECK(consumer_from_cgroup("0::/system.slice/vllm.service\n") == "/system.slice/vllm.service");
  CHECK(consumer_from_cgroup("0::/pods/pod1/c1\n") == "/pods/pod1/c1");
  CHECK(consumer_from_cgroup("12:memory:/pod1\n0::/\n") == "/pod1");
  CHECK(consumer_from_cgroup("12:memory:/pod1\n0::/unit\n") == "/unit");
  CHECK(consumer_from_cgroup("12:memory:/\n0::/\n").empty());
  CHECK(consumer_from_cgroup("garbage\n").empty());
}

TEST_CASE("who cannot be seen is the deployment's consumer") {
  CHECK(consumer_of(0, "eu-1/chat") == "eu-1/chat");
  CHECK(consumer_of(std::numeric_limits<pid_t>::max(), "eu-1/chat") == "eu-1/chat");
  CHECK(consumer_of(getpid(), "eu-1/chat") != "eu-1/chat");
}

TEST_CASE("a pod is one consumer, whatever containers it has, and after each restart of them") {
  CHECK(consumer_from_cgroup("0::/kubepods/pod1/c1\n") == "/kubepods/pod1");
  CHECK(consumer_from_cgroup("0::/kubepods/burstable/pod1-2/c1/init\n") ==
        "/kubepods/burstable/pod1-2");
  const std::string slice =
      "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0a_1b.slice";
  CHECK(consumer_from_cgroup("0::" + slice + "/cri-containerd-2f.scope\n") == slice);
  CHECK(consumer_from_cgroup("0::/kubepods.slice/kubepods-pod0a.slice/crio-2f.scope\n") ==
        "/kubepods.slice/kubepods-pod0a.slice");
  CHECK(consumer_from_cgroup("0::/docker/9c/kubelet.slice/kubepods/pod7/c2\n") ==
        "/docker/9c/kubelet.slice/kubepods/pod7");
  CHECK(consumer_from_cgroup("4:memory:/kubepods/pod3/c\n0::/\n") == "/kubepods/pod3");
}

TEST_CASE("the last error of a content is kept until a fill succeeds") {
  LastErrors errors;
  CHECK_FALSE(errors.find(Digest::of("x")));
  errors.set(Digest::of("x"), "no route");
  CHECK(errors.find(Digest::of("x")) == "no route");
  errors.clear(Digest::of("x"));
  CHECK_FALSE(errors.find(Digest::of("x")));
}
