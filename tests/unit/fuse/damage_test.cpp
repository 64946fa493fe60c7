// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// Bytes that are not what they should be.

#include "fixture.hpp"

#include "store/partial_blob.hpp"

using namespace weightfs;
using namespace weightfs::fuse::test;

TEST_CASE("after a boot a blob is checked before it is passed through", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const std::string path = "org/name/sub/w.safetensors";
  const std::uint64_t whole = complete(fixture, path);
  fixture.boot_id = "another boot";

  SECTION("an intact one gets its passthrough node once that is known") {
    fixture.start();
    fixture.daemon->wait_until_ready();
    const std::uint64_t checked = fixture.node(path);
    CHECK(checked == whole - 1);
    REQUIRE(fixture.open(checked).error == 0);
    CHECK(fixture.read_all(checked) == weights());
    fixture.release(checked);
    CHECK(complete(fixture, path) == whole);
  }
  SECTION("a damaged one is never read, and fetched again") {
    fixture.damage_blob();
    fixture.start();
    fixture.daemon->wait_until_ready();
    const std::uint64_t checked = fixture.node(path);
    REQUIRE(fixture.open(checked).error == 0);
    CHECK(fixture.kernel.read(checked, kDamaged, 4096).error == -EIO);
    fixture.release(checked);
    // No page of the damaged blob can be met there.
    const std::uint64_t mended =
        node_that(fixture, path, [&](std::uint64_t now) { return now != checked; });
    REQUIRE(fixture.open(mended).error == 0);
    CHECK(fixture.read_all(mended) == weights());
    fixture.release(mended);
  }
  SECTION("with verify_open=never it is passed through as it is") {
    fixture.checks = vfs::CheckPolicy::kNever;
    fixture.start();
    fixture.daemon->wait_until_ready();
    CHECK(fixture.node(path) == whole);
  }
  SECTION("with verify_open=always it never is") {
    fixture.checks = vfs::CheckPolicy::kAlways;
    fixture.boot_id = "this boot";
    fixture.start();
    fixture.daemon->wait_until_ready();
    const std::uint64_t checked = fixture.node(path);
    CHECK(checked == whole - 1);
    REQUIRE(fixture.open(checked).error == 0);
    CHECK(fixture.read_all(checked) == weights());
    fixture.release(checked);
    CHECK(fixture.node(path) == checked);
    // Which says nothing of where its bytes are.
    CHECK(fixture.daemon->filesystem.attribute(vfs::NodeId(checked), "user.weightfs.state") ==
          "complete");
  }
  SECTION("with verify_open=always, too, a damaged one is fetched again") {
    fixture.damage_blob();
    fixture.checks = vfs::CheckPolicy::kAlways;
    fixture.start();
    fixture.daemon->wait_until_ready();
    const std::uint64_t checked = fixture.node(path);
    REQUIRE(fixture.open(checked).error == 0);
    CHECK(fixture.kernel.read(checked, kDamaged, 4096).error == -EIO);
    CHECK_FALSE(std::filesystem::exists(fixture.blob()));
    const std::uint64_t mended = fixture.node(path);
    CHECK(mended != checked);
    REQUIRE(fixture.open(mended).error == 0);
    CHECK(fixture.read_all(mended) == weights());
    fixture.release(mended);
    REQUIRE(in_time([&] { return std::filesystem::exists(fixture.blob()); }));
    // The judgement on the old file came first, and another read of it is none on the new one.
    CHECK(fixture.kernel.read(checked, kDamaged, 4096).error == -EIO);
    CHECK(std::filesystem::exists(fixture.blob()));
    fixture.release(checked);
    CHECK(fixture.node(path) == mended);
  }
  SECTION("an intact one is read although its midstates cannot be had or renewed") {
    std::string parts;  // more than one, so that there are midstates
    while (parts.size() <= store::kPartSize) parts += weights();
    fixture.write("model/sub/parts", parts);
    fixture.add_listed("org/listed", "parts", parts.size(), parts);
    const std::uint64_t twin = complete(fixture, "org/listed/parts");
    const std::filesystem::path midstates = fixture.blob(parts).string() + ".parts";
    REQUIRE(in_time([&] { return std::filesystem::exists(midstates); }));
    std::filesystem::remove(midstates);
    std::filesystem::create_directories(midstates / "in the way");
    fixture.start();
    fixture.daemon->wait_until_ready();
    const std::uint64_t checked = fixture.node("org/listed/parts");
    CHECK(checked == twin - 1);
    REQUIRE(fixture.open(checked).error == 0);
    CHECK(fixture.read_all(checked) == parts);
    fixture.release(checked);
    CHECK(fixture.node("org/listed/parts") == twin);
  }
}

TEST_CASE("a reader with bytes that were disowned gets no others, also from a successor",
          "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  const std::string path = "org/name/sub/w.safetensors";
  const std::uint64_t node = fixture.node(path);
  REQUIRE(fixture.open(node).error == 0);
  REQUIRE(fixture.kernel.read(node, 0, 4096).error == 0);
  auto& filesystem = fixture.daemon->filesystem;
  filesystem.bytes_discarded(filesystem.target(*filesystem.walk(path)).key());
  fixture.start();
  CHECK(fixture.kernel.read(node, 1 << 20, 4096).error == -EIO);
  CHECK(fixture.open(node).error == -ESTALE);
  fixture.release(node);
  const std::uint64_t fresh = fixture.node(path);
  CHECK(fresh != node);
  REQUIRE(fixture.open(fresh).error == 0);
  CHECK(fixture.read_all(fresh) == weights());
  fixture.release(fresh);
}

TEST_CASE("an open that starts a fill which disowns the pages of its node looks up again",
          "[fuse]") {
  Fixture fixture;
  fixture.add_listed("org/listed", "w.safetensors", kWeights);
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->fetcher->set_keep(fetch::Keep::kMemoryOnly);
  const std::uint64_t node = fixture.node("org/listed/w.safetensors");
  REQUIRE(fixture.open(node).error == 0);
  CHECK(fixture.kernel.read(node, 0, 4096).text() == weights().substr(0, 4096));
  fixture.release(node);
  REQUIRE(in_time([&] { return fixture.daemon->fetcher->fills().empty(); }));
  fixture.daemon->fetcher->set_keep(fetch::Keep::kStore);
  CHECK(fixture.open(node).error == -ESTALE);
  CHECK(fixture.daemon->filesystem.counters().open_files == 0);
  const std::uint64_t fresh = fixture.node("org/listed/w.safetensors");
  CHECK(fresh != node);
  REQUIRE(fixture.open(fresh).error == 0);
  CHECK(fixture.read_all(fresh) == weights());
  fixture.release(fresh);
}

TEST_CASE("a blob that was cut short is an error and not the end of the file", "[fuse]") {
  Fixture fixture;
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  const std::uint64_t whole = complete(fixture, "org/name/sub/w.safetensors");
  REQUIRE(fixture.open(whole).error == 0);
  std::filesystem::permissions(fixture.blob(), std::filesystem::perms::owner_all);
  std::filesystem::resize_file(fixture.blob(), 4096);
  CHECK(fixture.kernel.read(whole, 0, 4096).text() == weights().substr(0, 4096));
  CHECK(fixture.kernel.read(whole, 0, 8192).error == -EIO);
  CHECK(fixture.kernel.read(whole, 8192, 4096).error == -EIO);
  fixture.release(whole);
}

TEST_CASE("a listing that gives a digest another size gets an error, not other bytes", "[fuse]") {
  Fixture fixture;
  fixture.add_listed("org/liar", "w.safetensors", kWeights + 1);
  REQUIRE(fixture.kernel.init().error == 0);
  fixture.daemon->wait_until_ready();
  complete(fixture, "org/name/sub/w.safetensors");
  CHECK(fixture.open(fixture.node("org/liar/w.safetensors")).error == -EIO);
}
