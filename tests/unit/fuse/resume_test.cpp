// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// One kernel, one daemon after the other.

#include "fixture.hpp"

#include <atomic>

using namespace weightfs;
using namespace weightfs::fuse::test;

TEST_CASE("all opens of a complete node share one backing id until the last release", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const std::uint64_t whole = complete(fixture, "org/name/sub/w.safetensors");
  const int before = fixture.backings.opened;
  REQUIRE(fixture.open(whole).error == 0);
  REQUIRE(fixture.open(whole).error == 0);
  CHECK(fixture.backings.opened == before + 1);
  fixture.release(whole);
  CHECK(fixture.backings.open == 1);

  SECTION("also over a restart of the daemon") {
    fixture.start();
    fixture.daemon->wait_until_ready();
    REQUIRE(fixture.open(whole).error == 0);
    CHECK(fixture.backings.opened == before + 2);  // the probe of the new daemon
    fixture.release(whole);
    CHECK(fixture.backings.open == 1);
  }
  fixture.release(whole);
  CHECK(fixture.backings.open == 0);
}

TEST_CASE("a successor understands the node ids that its predecessor gave out", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const std::uint64_t node = fixture.node("org/name/sub/w.safetensors");
  REQUIRE(fixture.open(node).error == 0);
  CHECK(fixture.kernel.read(node, 0, 10).text() == weights().substr(0, 10));
  fixture.start();
  CHECK(fixture.read_all(node) == weights());
  fixture.release(node);
  CHECK(fixture.daemon->filesystem.counters().open_files == 0);
}

TEST_CASE("who holds what was streamed reads on with a successor that keeps what it fetches",
          "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  fixture.daemon->fetcher->set_keep(fetch::Keep::kMemoryOnly);
  const std::uint64_t node = fixture.node("org/name/sub/w.safetensors");
  REQUIRE(fixture.open(node).error == 0);
  CHECK(fixture.kernel.read(node, 0, 10).text() == weights().substr(0, 10));
  fixture.start();
  fixture.daemon->wait_until_ready();
  REQUIRE(fixture.daemon->fetcher->keep() == fetch::Keep::kStore);
  CHECK(fixture.read_all(node) == weights());
  fixture.release(node);
}

TEST_CASE("an OPEN or RELEASE that is sent again to a successor counts once", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const std::uint64_t whole = complete(fixture, "org/name/sub/w.safetensors");

  SECTION("OPEN: counted by a daemon that died before its reply") {
    const std::uint64_t lost = fixture.kernel.send(FUSE_OPEN, whole, fuse_open_in{});
    REQUIRE(fixture.kernel.wait(lost).error == 0);
    fixture.daemon.reset();
    fixture.kernel.resend(lost);
    fixture.start();
    const Reply reply = fixture.kernel.wait(lost);
    REQUIRE(reply.error == 0);
    fixture.handles.emplace(whole, reply.as<fuse_open_out>().fh);
    CHECK(fixture.memory.backing(whole)->opens == 1);
    CHECK(fixture.backings.open == 1);
    CHECK(fixture.daemon->filesystem.counters().open_files == 1);
  }
  SECTION("OPEN: a kernel that gave no reply up is not confused by one that it has") {
    REQUIRE(fixture.open(whole).error == 0);
    const std::uint64_t lost = fixture.kernel.send(FUSE_OPEN, whole, fuse_open_in{});
    fixture.kernel.wait(lost);
    fixture.start();
    fixture.daemon->wait_until_ready();
    fixture.kernel.resend(lost);
    const Reply again = fixture.kernel.wait(lost);
    REQUIRE(again.error == 0);
    fixture.handles.emplace(whole, again.as<fuse_open_out>().fh);
    CHECK(fixture.memory.backing(whole)->opens == 2);
    fixture.release(whole);
    CHECK(fixture.backings.open == 1);
  }
  SECTION("RELEASE: done by a daemon that died before its reply") {
    REQUIRE(fixture.open(whole).error == 0);
    REQUIRE(fixture.open(whole).error == 0);
    const std::uint64_t lost = fixture.kernel.send(FUSE_RELEASE, whole, fixture.closing(whole));
    REQUIRE(fixture.kernel.wait(lost).error == 0);
    fixture.daemon.reset();
    fixture.kernel.resend(lost);
    fixture.start();
    CHECK(fixture.kernel.wait(lost).error == 0);
    // The other open goes on with its backing id: another one would be EBUSY.
    CHECK(fixture.backings.open == 1);
    CHECK(fixture.memory.backing(whole)->opens == 1);
    CHECK(fixture.daemon->filesystem.counters().open_files == 1);
  }
  fixture.release(whole);
  CHECK(fixture.backings.open == 0);
  CHECK(fixture.memory.backings().empty());
  CHECK(fixture.daemon->filesystem.counters().open_files == 0);
}

TEST_CASE("every daemon asks the kernel to resend: what a dead one took in may be an INIT",
          "[fuse]") {
  Fixture fixture;
  constexpr std::int32_t kResend = 7;
  CHECK(fixture.kernel.notifications(1).at(0).error == kResend);
  fixture.start();  // nothing was saved by the first one
  CHECK(fixture.kernel.notifications(2).at(1).error == kResend);
  CHECK(fixture.kernel.init().error == 0);
}

TEST_CASE("requests that wait in the kernel while there is no daemon are answered by the next",
          "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const std::uint64_t node = fixture.node("org/name/config.json");
  fixture.daemon.reset();
  const std::uint64_t waiting = fixture.kernel.send(FUSE_GETATTR, node, fuse_getattr_in{});
  fixture.start();
  CHECK(fixture.kernel.wait(waiting).as<fuse_attr_out>().attr.size == 2);
}

TEST_CASE("nothing but INIT is served before the daemon is ready", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const std::string path = "org/name/sub/w.safetensors";
  const std::uint64_t whole = complete(fixture, path);
  const std::uint64_t parent = fixture.node("org/name/sub");

  // A mount that begins: whether files are passed through is not known before it is ready.
  keeper::SessionMemory memory(keeper::SessionMemory::create());
  for (const std::string& record : fixture.memory.records()) memory.append(record);
  FakeKernel kernel;
  std::atomic<bool> go = false;
  fixture.daemon.reset();
  Mounted daemon({.directory = fixture.scratch.path(),
                  .memory = memory,
                  .kernel = kernel,
                  .backings = fixture.backings,
                  .before_ready = [&] { go.wait(false); }});
  CHECK(kernel.init().error == 0);
  const std::string name = "w.safetensors";
  const std::uint64_t asked =
      kernel.send(FUSE_LOOKUP, parent, std::as_bytes(std::span(name.c_str(), name.size() + 1)));
  CHECK_FALSE(kernel.answered(asked, 100));
  go = true;
  go.notify_all();
  CHECK(kernel.wait(asked).as<fuse_entry_out>().nodeid == whole);
}
