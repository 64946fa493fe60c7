// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// A store on several disks, of which one is full, fails, or is changed. Needs root; skipped
// without.
#include "base/error.hpp"
#include "base/file.hpp"
#include "loop_filesystem.hpp"
#include "store/store.hpp"
#include "store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <optional>

namespace weightfs::store {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

constexpr std::uint64_t kMiB = 1 << 20;

/// Two disks, the second with more room than the first, and time that the test moves.
struct TwoDisks {
  TwoDisks() {
    if (const std::string reason = LoopFilesystem::unavailable(); !reason.empty()) {
      SKIP("no loop-mounted filesystem: " << reason);
    }
    small.emplace(32 * kMiB);
    large.emplace(64 * kMiB);
    store.open_volumes({.directories = {on_small(), on_large()}, .boot_id = "boot"});
  }

  [[nodiscard]] fs::path on_small() const { return small->path() / "store"; }
  [[nodiscard]] fs::path on_large() const { return large->path() / "store"; }
  [[nodiscard]] VolumeStatus of_small() const { return store.volumes()[0]; }
  [[nodiscard]] VolumeStatus of_large() const { return store.volumes()[1]; }
  [[nodiscard]] bool small_has(const Digest& digest) const {
    return fs::exists(blob_path(on_small(), digest));
  }
  [[nodiscard]] bool large_has(const Digest& digest) const {
    return fs::exists(blob_path(on_large(), digest));
  }
  /// As the store's thread does: until something came back, for at most `most`.
  bool probe_for(std::chrono::seconds most) {
    for (std::chrono::seconds passed{0}; passed <= most; passed += std::chrono::seconds(1)) {
      if (store.probe()) return true;
      clock.advance(std::chrono::seconds(1));
    }
    return false;
  }

  std::optional<LoopFilesystem> small;
  std::optional<LoopFilesystem> large;
  ManualClock clock;
  Store store{clock, Log::silent()};
};

Errc error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Errc::kInternal;
}

std::string content(std::uint64_t seed) {
  return random_bytes(2 * kMiB, seed);
}

TEST_CASE_METHOD(TwoDisks, "what is new goes where the most room is, and is found everywhere") {
  std::vector<Blob> blobs;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) blobs.push_back(put(store, content(seed)));
  CHECK(large_has(blobs[0].digest));
  CHECK(of_small().usage.blobs > 0);
  CHECK(of_large().usage.blobs > of_small().usage.blobs);
  CHECK(store.usage().blobs == 20);
  CHECK(store.usage().bytes == 40 * kMiB);
  CHECK(store.usage().capacity == of_small().usage.capacity + of_large().usage.capacity);
  CHECK(of_small().filesystem != of_large().filesystem);
  CHECK(store.list().size() == 20);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto found = store.find(blobs[seed - 1].digest);
    REQUIRE(found);
    CHECK(content_of(*found) == content(seed));
    CHECK(store.verified_this_boot(found->digest));
    CHECK(store.in_use(found->digest));
    CHECK(store.verify(found->digest, {}) == VerifyOutcome::kIntact);
  }
  for (const Blob& blob : blobs) CHECK(store.remove(blob.digest) == 2 * kMiB);
  CHECK(store.usage().blobs == 0);
}

TEST_CASE_METHOD(TwoDisks, "a partial blob is resumed where it is") {
  const std::string whole = content(1);
  const Digest key = hash(whole).digest;
  {
    const auto partial = store.partial(key, whole.size());
    fill(*partial, std::string_view(whole).substr(0, kMiB));
    CHECK(error_of([&] { (void)store.partial(key, whole.size()); }) == Errc::kBusy);
    CHECK(store.partial_use(key) == PartialUse::kFilling);
  }
  REQUIRE(fs::exists(partial_path(on_large(), key)));
  write_text(large->path() / "ballast", random_bytes(40 * kMiB, 2));
  CHECK(of_small().usage.free > of_large().usage.free);
  CHECK(store.partial_use(key) == PartialUse::kIdle);
  CHECK(store.partial_bytes(key) == kMiB);
  CHECK(store.partial(key, whole.size())->written_bytes() == kMiB);
  store.discard_partial(key);
  CHECK(store.partial_use(key) == PartialUse::kNone);
}

TEST_CASE_METHOD(TwoDisks, "a full disk is no bad one") {
  // There is room by the numbers, but not for this file.
  const Digest big = Digest::of("big");
  CHECK(error_of([&] { (void)store.partial(big, 100 * kMiB); }) == Errc::kNoSpace);
  for (const VolumeStatus& volume : store.volumes()) {
    CHECK(volume.state == VolumeState::kUsable);
    CHECK_THAT(volume.error, ContainsSubstring("No space"));
  }
  CHECK_THAT(store.trouble(), ContainsSubstring("is full"));
  CHECK(store.writable());
  CHECK(large_has(put(store, content(1)).digest));
  write_text(large->path() / "ballast", random_bytes(of_large().usage.free - kMiB, 2));
  CHECK(small_has(put(store, content(2)).digest));
  fs::remove(large->path() / "ballast");
  CHECK_FALSE(store.probe());
}

TEST_CASE_METHOD(TwoDisks, "a disk that was full and has the room again is full no more") {
  const auto wanted = of_large().usage.free - kMiB;
  write_text(large->path() / "ballast", random_bytes(40 * kMiB, 2));
  CHECK(error_of([&] { (void)store.partial(Digest::of("key"), wanted); }) == Errc::kNoSpace);
  CHECK_FALSE(of_large().error.empty());
  CHECK_FALSE(of_small().error.empty());
  fs::remove(large->path() / "ballast");
  CHECK(of_large().error.empty());
  CHECK_FALSE(of_small().error.empty());
}

TEST_CASE_METHOD(TwoDisks, "a disk that fails a write is set aside, and stays so while it does") {
  const Blob before = put(store, content(1));
  REQUIRE(large_has(before.digest));
  const std::string under_way = content(2);
  const Digest key = hash(under_way).digest;
  auto partial = store.partial(key, under_way.size());
  large->fail();
  CHECK(error_of([&] {
          fill(*partial, under_way);
          partial->checkpoint();
        }) == Errc::kIo);
  partial->discard();
  partial.reset();
  CHECK(of_large().state == VolumeState::kSetAside);
  CHECK(of_small().state == VolumeState::kUsable);
  CHECK_THAT(of_large().error, ContainsSubstring("Input/output error"));
  CHECK_THAT(store.trouble(), ContainsSubstring(on_large().string() + " is set aside"));
  CHECK(store.writable());
  CHECK(small_has(put(store, content(2)).digest));
  CHECK(store.remove(before.digest) == 0);
  store.discard_partials_but({});
  store.touch(before.digest);
  CHECK_FALSE(probe_for(std::chrono::seconds(200)));
  CHECK(of_large().state == VolumeState::kSetAside);
}

TEST_CASE_METHOD(TwoDisks, "a read-only disk is set aside when something is to be written") {
  const Blob before = put(store, content(1));
  large->abort();
  CHECK(small_has(put(store, content(2)).digest));
  CHECK(of_large().state == VolumeState::kSetAside);
  const auto found = store.find(before.digest);
  REQUIRE(found);
  CHECK(content_of(*found) == content(1));
  CHECK(store.contains(before.digest));
}

/// Nothing can be made or removed in a folder, by root neither, until it ends. As with a disk that
/// refuses to be written for a while.
class Immutable {
 public:
  explicit Immutable(std::vector<fs::path> folders) : folders_(std::move(folders)) { set("+i"); }
  Immutable(const Immutable&) = delete;
  Immutable& operator=(const Immutable&) = delete;
  ~Immutable() { set("-i"); }

 private:
  void set(const std::string& flag) const {
    for (const fs::path& folder : folders_) {
      REQUIRE(std::system(("chattr " + flag + " " + folder.string()).c_str()) == 0);
    }
  }
  std::vector<fs::path> folders_;
};

TEST_CASE_METHOD(TwoDisks, "a disk that can be written again is used again, after a probe") {
  {
    const Immutable immutable({on_large(), on_large() / "partial"});
    CHECK(small_has(put(store, content(1)).digest));
    CHECK(of_large().state == VolumeState::kSetAside);
    CHECK_FALSE(probe_for(std::chrono::seconds(5)));
  }
  CHECK(of_large().state == VolumeState::kSetAside);
  CHECK(small_has(put(store, content(2)).digest));
  CHECK(probe_for(std::chrono::seconds(20)));
  CHECK(of_large().state == VolumeState::kUsable);
  CHECK(store.trouble().empty());
  CHECK(entries_in(on_large() / "partial") == 0);
  CHECK_FALSE(fs::exists(on_large() / "probe"));
  CHECK(large_has(put(store, content(3)).digest));
}

TEST_CASE_METHOD(TwoDisks, "what was fetched twice because a disk was away is kept once") {
  const std::string whole = content(1);
  const Digest key = hash(whole).digest;
  fill(*store.partial(key, whole.size()), std::string_view(whole).substr(0, kMiB));
  REQUIRE(fs::exists(partial_path(on_large(), key)));
  {
    const Immutable immutable({on_large(), on_large() / "partial"});
    (void)put(store, content(2));  // finds out
    REQUIRE(of_large().state == VolumeState::kSetAside);
    CHECK(small_has(put(store, whole).digest));
  }
  CHECK(probe_for(std::chrono::seconds(20)));
  CHECK(store.partial_use(key) == PartialUse::kNone);
  CHECK_FALSE(fs::exists(partial_path(on_large(), key)));
}

TEST_CASE_METHOD(TwoDisks, "a directory that is gone is a miss, and its index stays") {
  const Blob before = put(store, content(1));
  const fs::path moved = large->path() / "moved";
  fs::rename(on_large(), moved);
  SECTION("found by who removes it") {
    CHECK(store.remove(before.digest) == 0);
  }
  SECTION("found by who counts") {
    CHECK(of_large().state == VolumeState::kSetAside);
  }
  SECTION("found by who looks for it") {
  }
  CHECK_FALSE(store.find(before.digest));
  CHECK_FALSE(store.contains(before.digest));
  CHECK(of_large().state == VolumeState::kSetAside);
  CHECK(small_has(put(store, content(2)).digest));
  CHECK_FALSE(probe_for(std::chrono::seconds(5)));
  fs::rename(moved, on_large());
  CHECK(probe_for(std::chrono::seconds(20)));
  CHECK(store.find(before.digest));
  CHECK(large_has(put(store, content(3)).digest));
}

TEST_CASE_METHOD(TwoDisks, "a disk that was changed is used, without a restart") {
  const Blob before = put(store, content(1));
  const auto partial = store.partial(Digest::of("key"), kMiB);
  large->replace();
  fs::create_directory(on_large());
  CHECK_FALSE(store.find(before.digest));
  CHECK(of_large().state == VolumeState::kSetAside);
  CHECK(content_of(before) == content(1));  // who has it open keeps it
  CHECK(probe_for(std::chrono::seconds(20)));
  CHECK(of_large().state == VolumeState::kUsable);
  CHECK_FALSE(store.contains(before.digest));
  CHECK(large_has(put(store, content(2)).digest));
}

TEST_CASE_METHOD(TwoDisks, "a disk that fails and is changed for its copy is used, index and all") {
  const Blob before = put(store, content(1));
  REQUIRE(large_has(before.digest));
  ::sync();
  large->abort();
  CHECK(small_has(put(store, content(2)).digest));
  CHECK(of_large().state == VolumeState::kSetAside);
  large->replace_by_copy();
  CHECK(probe_for(std::chrono::seconds(20)));
  CHECK(of_large().state == VolumeState::kUsable);
  CHECK(store.find(before.digest));
  CHECK(large_has(put(store, content(3)).digest));
  CHECK(of_large().state == VolumeState::kUsable);
}

TEST_CASE_METHOD(TwoDisks, "a process that has too many files open does not make a disk bad") {
  std::vector<Fd> all;
  for (;;) {
    Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd) break;
    all.push_back(std::move(fd));
    REQUIRE(all.size() < 1'000'000);
  }
  CHECK(error_of([&] { (void)store.partial(Digest::of("key"), kMiB); }) == Errc::kIo);
  all.clear();
  CHECK(of_large().state == VolumeState::kUsable);
  CHECK(store.trouble().empty());
}

}  // namespace
}  // namespace weightfs::store
