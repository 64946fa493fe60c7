// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/store.hpp"

#include "base/error.hpp"
#include "store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

namespace weightfs::store {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSize = 100'000;

Errc error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Errc::kInternal;
}

/// Directories of a store, none of them there yet, and time that the test moves.
struct Shelf {
  TemporaryDirectory root;
  ManualClock clock;
  Store store{clock, Log::silent()};

  [[nodiscard]] fs::path directory(const std::string& name) const { return root.path() / name; }
  void open(std::vector<fs::path> directories, Unopenable unopenable = Unopenable::kRefuse) {
    store.open_volumes({.directories = std::move(directories), .boot_id = "boot"}, unopenable);
  }
  /// Nothing can be made in it as long as it is a file.
  [[nodiscard]] fs::path out_of_reach(const std::string& name) const {
    write_text(root.path() / name, "no directory");
    return root.path() / name / "store";
  }
};

TEST_CASE_METHOD(Shelf, "a store without a volume has nothing and takes nothing") {
  const std::string content = random_bytes(kSize, 1);
  const Digest digest = hash(content).digest;
  CHECK_FALSE(store.find(digest));
  CHECK_FALSE(store.contains(digest));
  CHECK_FALSE(store.contains(digest, kSize));
  CHECK_FALSE(store.in_use(digest));
  CHECK_FALSE(store.verified_this_boot(digest));
  CHECK_FALSE(store.midstates(digest));
  CHECK(store.partial_use(digest) == PartialUse::kNone);
  CHECK(store.partial_bytes(digest) == 0);
  CHECK(store.remove(digest) == 0);
  CHECK(store.verify(digest, {}) == VerifyOutcome::kMissing);
  CHECK(store.list().empty());
  store.touch(digest);
  store.mark_verified(digest);
  store.discard_partial(digest);
  store.discard_partials_but({});
  store.quarantine(digest, "for no reason");
  CHECK(store.usage().capacity == 0);
  CHECK_FALSE(store.readable());
  CHECK_FALSE(store.writable());
  CHECK(store.trouble().empty());
  CHECK(error_of([&] { (void)store.partial(digest, kSize); }) == Errc::kIo);
  CHECK_FALSE(store.probe());
  CHECK(fs::is_empty(root.path()));
}

TEST_CASE_METHOD(Shelf, "volumes can be opened at any time, and again") {
  const std::string content = random_bytes(kSize, 1);
  open({directory("one")});
  const Blob blob = put(store, content);
  open({directory("one")});
  open({directory("one"), directory("two")});
  REQUIRE(store.volumes().size() == 2);
  CHECK(store.volumes()[0].directory == directory("one"));
  CHECK(store.volumes()[1].state == VolumeState::kUsable);
  CHECK(store.contains(blob.digest, kSize));
  CHECK(store.usage().blobs == 1);
}

TEST_CASE_METHOD(Shelf, "where one directory is not ours, none is opened") {
  fs::create_directory(directory("foreign"));
  write_text(directory("foreign") / "thesis.tex", "years of work");
  CHECK(error_of([&] { open({directory("one"), directory("foreign")}, Unopenable::kTryLater); }) ==
        Errc::kInvalid);
  CHECK(store.volumes().empty());
  CHECK_NOTHROW(open_volume(directory("one"), clock));
}

TEST_CASE_METHOD(Shelf, "a volume that cannot be opened is tried again, less and less often") {
  const fs::path away = out_of_reach("disk");
  CHECK_THROWS_AS(open({away}), Error);
  CHECK(store.volumes().empty());
  open({away}, Unopenable::kTryLater);
  REQUIRE(store.volumes().size() == 1);
  CHECK(store.volumes()[0].state == VolumeState::kNotOpened);
  CHECK_FALSE(store.volumes()[0].error.empty());
  CHECK(store.trouble().find(away.string()) != std::string::npos);
  CHECK_FALSE(store.writable());
  const auto seconds_until_opened = [&] {
    for (int second = 0; second < 1000; ++second) {
      if (store.probe()) return second;
      clock.advance(std::chrono::seconds(1));
    }
    return -1;
  };
  for (int second = 0; second < 200; ++second) {
    CHECK_FALSE(store.probe());
    clock.advance(std::chrono::seconds(1));
  }
  fs::remove(away.parent_path());
  const int waited = seconds_until_opened();
  CHECK(waited > 4);
  CHECK(waited <= 60);
  CHECK(store.volumes()[0].state == VolumeState::kUsable);
  CHECK(store.trouble().empty());
  CHECK(store.writable());
  const Blob blob = put(store, random_bytes(kSize, 1));
  CHECK(store.contains(blob.digest));
  CHECK_FALSE(store.probe());
}

TEST_CASE_METHOD(Shelf, "one directory of several that cannot be opened is no reason to refuse") {
  const fs::path away = out_of_reach("disk");
  open({away, directory("two")});
  CHECK(store.writable());
  CHECK_FALSE(store.trouble().empty());
  const Blob blob = put(store, random_bytes(kSize, 1));
  CHECK(fs::exists(blob_path(directory("two"), blob.digest)));
  fs::remove(away.parent_path());
  clock.advance(std::chrono::seconds(2));
  CHECK(store.probe());
  CHECK(store.trouble().empty());
}

}  // namespace
}  // namespace weightfs::store
