// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// A disk that others fill while a file is written that has its claim. Needs root; skipped without.
#include "../store/loop_filesystem.hpp"
#include "fetch/room.hpp"
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <memory>
#include <mutex>

namespace weightfs::fetch {
namespace {

using Catch::Matchers::ContainsSubstring;
using store::LoopFilesystem;

/// More than a part, so that `parts` is written, too.
constexpr std::uint64_t kSize = 9 * kMiB;

std::unique_ptr<LoopFilesystem> make_disk(LoopFilesystem::Kind kind) {
  const std::string reason = LoopFilesystem::unavailable(kind);
  if (!reason.empty()) SKIP("no loop-mounted filesystem: " << reason);
  return std::make_unique<LoopFilesystem>(48 << 20, kind);
}

/// Makes room on the disk for one after the other, or finds nothing to evict.
class Evicting final : public Room {
 public:
  explicit Evicting(const LoopFilesystem& disk) : disk_(disk) {}
  bool claim(const Target&, const std::function<void()>& take) override {
    take();
    return true;
  }
  void given_back() noexcept override { ++returns; }
  void streamed(const Target&) override {}
  void write_again(const Target&, const std::function<void()>& write) override {
    const std::lock_guard turn(turn_);
    ++asked;
    if (can) disk_.free_up();
    write();
  }
  std::atomic<bool> can{true};
  std::atomic<unsigned> asked{0};
  std::atomic<unsigned> returns{0};

 private:
  const LoopFilesystem& disk_;
  std::mutex turn_;
};

struct Disk {
  explicit Disk(LoopFilesystem::Kind kind) : disk(make_disk(kind)), room(*disk) {}
  std::unique_ptr<LoopFilesystem> disk;
  Evicting room;
};

class FullDisk : public Disk, public FetchFixture {
 public:
  explicit FullDisk(LoopFilesystem::Kind kind) : Disk(kind), FetchFixture(disk->path()) {
    options.room = &room;
    // Fills up once the place of the file is taken, and its first bytes are there.
    source->on_chunk([this](const snapshot::File&, ByteRange chunk, std::stop_token stop) {
      if (chunk.begin >= kMiB) gate.wait(stop);
    });
    start();
  }
  ~FullDisk() { stop(); }

  FillPtr fill_it_up() {
    const FillPtr fill = this->fill("a", kSize);
    fill->want(Want::kFile);
    REQUIRE(eventually([&] { return gate.arrived() > 0; }));
    disk->fill_up();
    gate.open();
    return fill;
  }
};

class FullForNames : public FullDisk {
 public:
  FullForNames() : FullDisk(LoopFilesystem::Kind::kExt4) {}
};

class FullForBytes : public FullDisk {
 public:
  FullForBytes() : FullDisk(LoopFilesystem::Kind::kExt4WithoutExtents) {}
};

void is_kept(FullDisk& disk, const FillPtr& fill) {
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK_FALSE(fill->progress().streaming);
  CHECK(disk.room.asked > 0);
  CHECK(FullDisk::reads_right(fill, {0, kSize}));
  CHECK(disk.store->contains(*fill->target().file().sha256));
  CHECK(disk.fetcher().counters().streamed == 0);
  CHECK(disk.observer.disowned().empty());
}

void is_streamed(FullDisk& disk, const FillPtr& fill) {
  CHECK(FullDisk::reads_right(fill, {0, kSize}));
  REQUIRE(eventually([&] { return fill->progress().streaming; }));
  CHECK(disk.fetcher().counters().streamed == 1);
  CHECK(disk.store->list().empty());
  CHECK(disk.store->writable());
}

TEST_CASE_METHOD(FullForBytes, "bytes that find the disk full are written with the room made") {
  is_kept(*this, fill_it_up());
}

TEST_CASE_METHOD(FullForBytes, "bytes that find the disk full go past it where nothing can go") {
  room.can = false;
  is_streamed(*this, fill_it_up());
  CHECK_THAT(store->trouble(), ContainsSubstring("is full"));
  disk->free_up();
  static_cast<void>(store->usage());
  CHECK(store->trouble().empty());
}

TEST_CASE_METHOD(FullForNames, "a file that cannot be published for want of room is, with room") {
  is_kept(*this, fill_it_up());
  CHECK(room.asked == 1);
}

TEST_CASE_METHOD(FullForNames, "a file that cannot be published at all goes past the disk") {
  room.can = false;
  const FillPtr fill = fill_it_up();
  REQUIRE(eventually([&] { return fill->progress().streaming; }));
  is_streamed(*this, fill);
  CHECK(store->usage().partial_bytes == 0);
}

}  // namespace
}  // namespace weightfs::fetch
