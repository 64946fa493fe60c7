// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/reader_yield.hpp"

#include "fetch/disk_reads.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kFloor = 8 * kMiB;

/// A disk that others and fills read, each at a speed, while fills receive.
class Disk {
 public:
  Disk() { pass(0, 0, 0); }

  /// MiB per second, for one interval.
  void pass(std::uint64_t others, std::uint64_t own, std::uint64_t fills,
            std::chrono::milliseconds time = ReaderYield::kInterval) {
    now_ += time;
    const auto count = static_cast<std::uint64_t>(time.count());
    counts_.disk += (others + own) * kMiB * count / 1000;
    counts_.own += own * kMiB * count / 1000;
    counts_.received += fills * kMiB * count / 1000;
    counts_.opened = opened;
    CHECK(yield.due(now_));
    yield.sample(now_, counts_);
    CHECK_FALSE(yield.due(now_));
  }

  ReaderYield yield{kFloor};
  bool opened = true;

 private:
  ReaderYield::TimePoint now_ = ReaderYield::TimePoint() + 1h;
  ReaderYield::Counts counts_;
};

TEST_CASE("nothing slows a fill down while nobody reads") {
  Disk disk;
  for (int i = 0; i < 100; ++i) disk.pass(0, 0, 500);
  CHECK(disk.yield.rate() == 0);
}

TEST_CASE("as soon as others read it goes at the floor, and on at full speed soon after them") {
  Disk disk;
  disk.pass(0, 0, 100);
  disk.pass(100, 0, 100);
  CHECK(disk.yield.rate() == kFloor);
  disk.pass(0, 0, 8);
  disk.pass(100, 0, 8);
  for (int i = 0; i < 5; ++i) {
    disk.pass(0, 0, 8);
    CHECK(disk.yield.rate() == kFloor);
  }
  disk.pass(0, 0, 8);
  CHECK(disk.yield.rate() == 0);
}

TEST_CASE("a fast disk still has a twentieth") {
  Disk disk;
  for (int i = 0; i < 100; ++i) disk.pass(0, 0, 2000);
  for (int i = 0; i < 100; ++i) disk.pass(3000, 0, 100);
  CHECK(disk.yield.rate() > 95 * kMiB);
  CHECK(disk.yield.rate() <= 100 * kMiB);
}

TEST_CASE("what fills read themselves, and the housekeeping of a machine, are no readers") {
  Disk disk;
  for (int i = 0; i < 100; ++i) disk.pass(0, 800, 800);
  disk.pass(1, 0, 800);
  CHECK(disk.yield.rate() == 0);
  disk.pass(300, 800, 800);
  CHECK(disk.yield.rate() > 0);
}

TEST_CASE("while nobody has a file open, whoever reads the disk is no consumer") {
  Disk disk;
  disk.opened = false;
  disk.pass(1000, 0, 100);
  CHECK(disk.yield.rate() == 0);
  disk.opened = true;
  disk.pass(1000, 0, 100);
  CHECK(disk.yield.rate() == kFloor);
  disk.opened = false;
  disk.pass(1000, 0, 100);
  CHECK(disk.yield.rate() == 0);
}

TEST_CASE("what begins after a long time begins slowly, until it is known whether anybody reads") {
  Disk disk;
  CHECK(disk.yield.rate() == kFloor);
  disk.pass(0, 0, 0);
  CHECK(disk.yield.rate() == 0);
  disk.pass(1000, 0, 0, 10min);
  CHECK(disk.yield.rate() == kFloor);
  disk.pass(0, 0, 100);
  CHECK(disk.yield.rate() == 0);
  disk.opened = false;
  disk.pass(1000, 0, 0, 10min);
  CHECK(disk.yield.rate() == 0);
  disk.pass(0, 0, 100);
  CHECK(disk.yield.rate() == 0);
}

TEST_CASE("a directory that is not there, or has no block device, lies on no disk that counts") {
  CHECK_FALSE(DiskReads({}).bytes());
  CHECK_FALSE(DiskReads({"/nonexistent", "/proc"}).bytes());
}

}  // namespace
}  // namespace weightfs::fetch
