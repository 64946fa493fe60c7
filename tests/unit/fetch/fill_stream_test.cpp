// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

namespace weightfs::fetch {
namespace {

using namespace std::chrono_literals;

/// Reads [0, size) front to back as the kernel does; says whether every byte was right, and what
/// the fetcher held in memory at most.
std::pair<bool, std::uint64_t> read_through(FetchFixture& fixture, const FillPtr& fill,
                                            std::uint64_t size, std::uint64_t step) {
  bool right = true;
  std::uint64_t most = 0;
  for (std::uint64_t at = 0; at < size; at += step) {
    right = FetchFixture::reads_right(fill, {at, std::min(size, at + step)}) && right;
    most = std::max(most, fixture.fetcher().streaming_bytes());
  }
  return {right, most};
}

/// Files of this process cannot grow beyond `bytes` while it lives: a disk that fails late.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::uint64_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

/// A filesystem in memory of the size given, for as long as it lives.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& size) {
    std::string name = "/tmp/weightfs-small-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) return;
    if (::mount("tmpfs", name.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0) path_ = name;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (path_.empty()) return;
    ::umount2(path_.c_str(), MNT_DETACH);
    ::rmdir(path_.c_str());
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

TEST_CASE_METHOD(FetchFixture,
                 "without the store, reads stream through memory that stays bounded") {
  options.keep = Keep::kMemoryOnly;
  options.stream_memory = 2 * kMiB;
  start();
  const FillPtr fill = this->fill("model.safetensors", 30 * kMiB + 17);
  CHECK(fill->progress().streaming);
  const auto [right, most] = read_through(*this, fill, 30 * kMiB + 17, 128 * kKiB);
  CHECK(right);
  // A block that a worker brings counts before another has made room for it.
  CHECK(most <= 2 * kMiB + (options.connections + 1) * store::kBlockSize);
  CHECK(store->usage().partial_bytes == 0);
  CHECK(store->usage().blobs == 0);
  CHECK(fetcher().counters().streamed == 0);  // by intent, not by trouble
}

TEST_CASE_METHOD(FetchFixture, "without the store, not even what it has is used") {
  start();
  const Target wanted = target("a", kMiB);
  {
    const FillPtr fill = fetcher().fill(wanted);
    fill->want(Want::kFile);
    REQUIRE(eventually([&] { return !observer.completed().empty(); }));
  }
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  fetcher().set_keep(Keep::kMemoryOnly);
  CHECK(fetcher().keep() == Keep::kMemoryOnly);
  CHECK(reads_right(fetcher().fill(wanted), {0, kMiB}));
  CHECK(source->delivered() == 2 * kMiB);
}

TEST_CASE_METHOD(FetchFixture, "what was only streamed is disowned when a fill that keeps begins") {
  options.keep = Keep::kMemoryOnly;
  start();
  const Target wanted = target("a", kMiB);
  for (int i = 0; i < 3; ++i) {
    CHECK(reads_right(fetcher().fill(wanted), {0, 100}));
    REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  }
  CHECK(observer.disowned().empty());  // streams follow one another
  fetcher().set_keep(Keep::kStore);
  FillPtr fill = fetcher().fill(wanted);
  CHECK(observer.disowned() == std::vector<std::string>{"a"});
  fill.reset();
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  fill = fetcher().fill(wanted);
  CHECK(observer.disowned().size() == 1);
}

TEST_CASE_METHOD(FetchFixture, "what does not last is disowned before it is looked up again") {
  options.keep = Keep::kMemoryOnly;
  start();
  const Target wanted = target("a", kMiB);
  {
    const FillPtr fill = fetcher().fill(wanted);
    CHECK(reads_right(fill, {0, 100}));
    fetcher().set_keep(Keep::kStore);
    fetcher().settle(wanted);
    CHECK(observer.disowned().empty());  // it would be joined
  }
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  fetcher().set_keep(Keep::kMemoryOnly);
  fetcher().settle(wanted);
  CHECK(observer.disowned().empty());  // streams follow one another
  fetcher().set_keep(Keep::kStore);
  SECTION("by the next fill that keeps") {
    fetcher().settle(wanted);
    fetcher().settle(wanted);
    CHECK(observer.disowned().size() == 1);
    CHECK(reads_right(fetcher().fill(wanted), {0, 100}));
    CHECK(observer.disowned().size() == 1);
  }
  SECTION("but not for one who holds it, who gets it streamed") {
    const FillPtr held = fetcher().fill(wanted, Fetcher::Begin::kHeld);
    CHECK(held->progress().streaming);
    CHECK(reads_right(held, {0, kMiB}));
    CHECK(observer.disowned().empty());
  }
}

TEST_CASE_METHOD(FetchFixture, "a sequential reader is read ahead for, modestly") {
  options.keep = Keep::kMemoryOnly;
  options.file_ahead_after = kMiB;
  start();
  const FillPtr fill = this->fill("a", 30 * kMiB);
  const auto [right, most] = read_through(*this, fill, 2 * kMiB, 128 * kKiB);
  CHECK(right);
  CHECK(eventually([&] { return source->delivered() >= 6 * kMiB; }));
  CHECK(source->delivered() == 6 * kMiB);
  const auto before = fetcher().counters().waited_reads;
  CHECK(reads_right(fill, {2 * kMiB, 3 * kMiB}));
  CHECK(fetcher().counters().waited_reads == before);
}

TEST_CASE_METHOD(FetchFixture, "more readers than memory are all answered, in turn") {
  options.keep = Keep::kMemoryOnly;
  options.stream_memory = kMiB;
  Gate& held = gate;
  source->on_chunk([&](const auto&, ByteRange, std::stop_token stop) { held.wait(stop); });
  start();
  const Target wanted = target("a", 40 * kMiB);
  const FillPtr fill = fetcher().fill(wanted);
  std::vector<std::unique_ptr<PendingRead>> reads;
  std::vector<ByteRange> ranges;
  std::mt19937_64 random(11);
  for (int i = 0; i < 64; ++i) {
    const std::uint64_t at = random() % (39 * kMiB);
    ranges.push_back({at, at + kMiB});
    reads.push_back(std::make_unique<PendingRead>(fill, at, kMiB));
  }
  CHECK(fill->progress().parked == 64);
  fill->cancel(reads[7]->id());
  gate.open();
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (i == 7) {
      CHECK(reads[i]->failure() == Errc::kCancelled);
    } else {
      CHECK(reads[i]->wait() == content(wanted, ranges[i]));
    }
    most = std::max(most, fetcher().streaming_bytes());
  }
  CHECK(most <= 2 * kMiB + (options.connections + 1) * store::kBlockSize);
}

TEST_CASE_METHOD(FetchFixture, "a broken connection is resumed from its last whole block") {
  options.keep = Keep::kMemoryOnly;
  const auto failed = std::make_shared<std::atomic<bool>>(false);
  source->on_chunk([failed](const auto&, ByteRange chunk, std::stop_token) {
    if (chunk.begin == 80 * kKiB && !failed->exchange(true)) {
      throw TransientError(Errc::kUnavailable, "reset");
    }
  });
  start();
  CHECK(reads_right(this->fill("a", kMiB), {0, 512 * kKiB}));
  CHECK(source->requests()[1].range == ByteRange{64 * kKiB, 512 * kKiB});
}

TEST_CASE("a disk that is full from the start is not seen by readers") {
  const SmallDisk disk("8m");
  if (disk.path().empty()) SKIP("mounting a small tmpfs takes root");
  FetchFixture fixture(disk.path());
  fixture.start();
  const FillPtr fill = fixture.fill("a", 20 * kMiB);
  CHECK(fill->progress().streaming);
  CHECK(read_through(fixture, fill, 20 * kMiB, kMiB).first);
  CHECK(fixture.fetcher().counters().streamed == 1);
  // What fits is still kept.
  const FillPtr small = fixture.fill("b", kMiB);
  small->want(Want::kFile);
  CHECK(eventually([&] { return small->progress().state == FillState::kComplete; }));
}

TEST_CASE_METHOD(FetchFixture,
                 "a disk that fails under way is not seen by readers, parked or to come") {
  start();
  const Target wanted = target("a", 12 * kMiB);
  const FillPtr fill = fetcher().fill(wanted);
  std::atomic<bool> ended = false;
  fill->on_end([&] { ended = true; });
  source->on_chunk([this](const auto&, ByteRange chunk, std::stop_token stop) {
    if (chunk.begin >= 8 * kMiB) gate.wait(stop);
  });
  fill->want(Want::kFile);
  CHECK(reads_right(fill, {0, 4 * kMiB}));
  PendingRead parked(fill, 8 * kMiB, kMiB);
  {
    const FileSizeLimit limit(6 * kMiB);
    gate.open();
    CHECK(parked.wait() == content(wanted, {8 * kMiB, 9 * kMiB}));
  }
  CHECK(fill->progress().state == FillState::kFilling);
  CHECK(fill->progress().streaming);
  CHECK(eventually([&] { return ended.load(); }));
  CHECK(fetcher().counters().streamed == 1);
  CHECK(eventually([&] { return store->usage().partial_bytes == 0; }));
  CHECK(read_through(*this, fill, 12 * kMiB, kMiB).first);
  CHECK(observer.failed().empty());
  CHECK(observer.disowned().size() == 1);
}

TEST_CASE_METHOD(FetchFixture,
                 "a fill past the disk closes with its last reader, and the next one keeps") {
  start();
  const Target wanted = target("a", 12 * kMiB);
  FillPtr fill = fetcher().fill(wanted);
  {
    const FileSizeLimit limit(kMiB);
    CHECK(reads_right(fill, {5 * kMiB, 6 * kMiB}));
  }
  fill.reset();
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(fetcher().streaming_bytes() == 0);
  CHECK(fetcher().fill(wanted)->progress().streaming);  // its disk is set aside
  REQUIRE(eventually([&] { return fetcher().fills().empty(); }));
  CHECK_FALSE(store->probe());
  clock.advance(store::ProbeSchedule::kFirst);
  CHECK(store->probe());
  fill = fetcher().fill(wanted);
  CHECK_FALSE(fill->progress().streaming);
  fill->want(Want::kFile);
  CHECK(eventually([&] { return fill->progress().state == FillState::kComplete; }));
}

TEST_CASE_METHOD(FetchFixture, "strict gives out nothing that was not verified, disk or no disk") {
  options.verify = Verify::kStrict;
  SECTION("the mode leaves the store alone") {
    options.keep = Keep::kMemoryOnly;
    start();
    CHECK_THROWS_WITH((void)this->fill("a", kMiB),
                      "verify=strict needs the store, which this mode leaves alone");
  }
  SECTION("the store could not be opened") {
    store = std::make_unique<store::Store>(clock, Log::silent());
    store->open_volumes({.directories = {"/sys/weightfs"}}, store::Unopenable::kTryLater);
    start();
    CHECK_THROWS_WITH((void)this->fill("a", kMiB),
                      Catch::Matchers::StartsWith(
                          "verify=strict needs the store, which cannot be written to: the store "
                          "/sys/weightfs could not be opened: "));
  }
  SECTION("the disk fails under way") {
    start();
    const FillPtr fill = this->fill("a", 12 * kMiB);
    const FileSizeLimit limit(kMiB);
    CHECK(PendingRead(fill, 0, 100).failure() == Errc::kIo);
  }
}

}  // namespace
}  // namespace weightfs::fetch
