// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/quarantine.hpp"

#include "loop_filesystem.hpp"
#include "store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <optional>

using namespace weightfs;
using namespace weightfs::store;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Ward {
  TemporaryDirectory directory;
  ManualClock clock;
  std::filesystem::path room = directory.path() / "quarantine";

  Ward() { std::filesystem::create_directory(room); }

  [[nodiscard]] Quarantine open(QuarantineLimits limits) const {
    return {room, limits, clock, Log::silent()};
  }
  void take(Quarantine& quarantine, const std::string& content) const {
    write_text(directory.path() / "bad", content);
    quarantine.take(directory.path() / "bad", Digest::of(content), "for " + content);
  }
  [[nodiscard]] bool holds(const std::string& content) const {
    for (const auto& entry : std::filesystem::directory_iterator(room)) {
      if (entry.path().filename().string().ends_with(Digest::of(content).hex())) return true;
    }
    return false;
  }
};

}  // namespace

TEST_CASE("a bad file is kept with a note of what is wrong with it") {
  Ward ward;
  Quarantine quarantine = ward.open({});
  ward.take(quarantine, "poison");
  CHECK(quarantine.files() == 1);
  CHECK_FALSE(std::filesystem::exists(ward.directory.path() / "bad"));
  const std::string name = "001700000000.000-" + Digest::of("poison").hex();
  CHECK(read_text(ward.room / name) == "poison");
  const std::string note = read_text(ward.room / (name + ".txt"));
  CHECK_THAT(note, ContainsSubstring("reason: for poison\n"));
  CHECK_THAT(note, ContainsSubstring("size: 6\n"));
  CHECK_THAT(note, ContainsSubstring("kept: yes\n"));
}

TEST_CASE("the oldest go first when there are too many, also after a restart") {
  Ward ward;
  {
    Quarantine quarantine = ward.open({.files = 2});
    ward.take(quarantine, "one");
    ward.take(quarantine, "one");  // the same again, in the same second
    ward.clock.advance(std::chrono::seconds(1));
    ward.take(quarantine, "two");
    CHECK(quarantine.files() == 2);
  }
  Quarantine quarantine = ward.open({.files = 2});
  CHECK(quarantine.files() == 2);
  ward.clock.advance(std::chrono::seconds(1));
  ward.take(quarantine, "three");
  CHECK(quarantine.files() == 2);
  CHECK_FALSE(ward.holds("one"));
  CHECK(ward.holds("two"));
  CHECK(ward.holds("three"));
  CHECK(entries_in(ward.room) == 4);
}

TEST_CASE("the oldest go first when they take too much room") {
  Ward ward;
  Quarantine quarantine = ward.open({.files = 10, .bytes = 100});
  for (const char c : {'a', 'b', 'c'}) {
    ward.take(quarantine, std::string(40, c));
    ward.clock.advance(std::chrono::seconds(1));
  }
  CHECK_FALSE(ward.holds(std::string(40, 'a')));
  CHECK(ward.holds(std::string(40, 'b')));
  CHECK(ward.holds(std::string(40, 'c')));
}

TEST_CASE("a file larger than the whole room leaves its note only") {
  Ward ward;
  Quarantine quarantine = ward.open({.files = 10, .bytes = 10});
  ward.take(quarantine, std::string(11, 'x'));
  CHECK_FALSE(std::filesystem::exists(ward.directory.path() / "bad"));
  CHECK_FALSE(ward.holds(std::string(11, 'x')));
  CHECK(entries_in(ward.room) == 1);
  CHECK(quarantine.files() == 1);
}

TEST_CASE("on a small disk it takes a small part, and the rest stays for the cache") {
  if (const std::string why = LoopFilesystem::unavailable(); !why.empty()) SKIP(why);
  const LoopFilesystem disk(32 << 20);
  const std::filesystem::path room = disk.path() / "quarantine";
  std::filesystem::create_directory(room);
  const ManualClock clock;
  Quarantine quarantine(room, {}, clock, Log::silent());
  for (const std::uint64_t seed : {1, 2, 3}) {
    const std::string content = random_bytes(900 << 10, seed);
    write_text(disk.path() / "bad", content);
    quarantine.take(disk.path() / "bad", Digest::of(content), "wrong");
  }
  std::uint64_t kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(room)) kept += entry.file_size();
  CHECK(kept > 900 << 10);
  CHECK(kept < 2 << 20);
}
