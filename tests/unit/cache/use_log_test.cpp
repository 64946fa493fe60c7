// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/use_log.hpp"

#include "../store/store_fixture.hpp"
#include "base/file.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace weightfs::cache {
namespace {

using policy::Area;
using store::TemporaryDirectory;

const Digest kA = Digest::of("a");
const Digest kB = Digest::of("b");
const Digest kC = Digest::of("c");

struct Place {
  TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "uses";
  [[nodiscard]] UseLog open() const { return {file, UseLog::Writing::kFile, Log::silent()}; }
};

TEST_CASE("what was noted is there again, in its order, after any end") {
  const Place place;
  {
    UseLog log = place.open();
    log.use({.snapshot = kA, .area = Area::kProbation, .time = 1});
    log.use({.snapshot = kB, .area = Area::kResident, .time = 2});
    log.use({.snapshot = kC, .area = Area::kResident, .time = 3});
    log.use({.snapshot = kA, .area = Area::kResident, .time = 4});
    log.drop(kC);
    log.reference({.snapshot = kB, .first_consumer = 0xabcdef, .proven = false});
    log.reference({.snapshot = kA, .first_consumer = 1, .proven = false});
    log.reference({.snapshot = kB, .first_consumer = 0xabcdef, .proven = true});
  }
  for (int life = 0; life < 2; ++life) {
    UseLog log = place.open();
    const UseLog::Memory memory = log.take();
    CHECK(memory.uses ==
          std::vector<UseLog::Use>{{kB, Area::kResident, 2}, {kA, Area::kResident, 4}});
    REQUIRE(memory.references.size() == 2);
    CHECK(memory.references[0].snapshot == kA);
    CHECK(memory.references[1] ==
          policy::References::Record{.snapshot = kB, .first_consumer = 0xabcdef, .proven = true});
  }
}

TEST_CASE("a line that was torn, or is not ours, is passed over") {
  const Place place;
  {
    UseLog log = place.open();
    log.use({.snapshot = kA, .area = Area::kResident, .time = 1});
  }
  std::string text = store::read_text(place.file);
  text += "use nonsense resident 1\nhello\n\nuse " + kC.hex() + " somewhere 1\nreference " +
          kC.hex() + " zz once\nuse " + kB.hex() + " resid";
  store::write_text(place.file, text);
  UseLog log = place.open();
  const UseLog::Memory memory = log.take();
  CHECK(memory.uses == std::vector<UseLog::Use>{{kA, Area::kResident, 1}});
  CHECK(memory.references.empty());
}

TEST_CASE("a file of another version is left out, not read") {
  const Place place;
  store::write_text(place.file, "weightfs uses 2\nuse " + kA.hex() + " resident 1\n");
  UseLog log = place.open();
  CHECK(log.take().uses.empty());
}

TEST_CASE("a log that has grown is written anew") {
  const Place place;
  UseLog log = place.open();
  const UseLog::Use use{.snapshot = kA, .area = Area::kResident, .time = 1};
  while (!log.wants_rewrite()) log.use(use);
  log.rewrite({.references = {}, .uses = {use}});
  CHECK_FALSE(log.wants_rewrite());
  log.use({.snapshot = kB, .area = Area::kResident, .time = 2});
  CHECK(store::read_text(place.file).size() < 300);
  UseLog again = place.open();
  CHECK(again.take().uses.size() == 2);
}

TEST_CASE("one that is not to be written is read, and left as it is") {
  const Place place;
  place.open().use({.snapshot = kA, .area = Area::kResident, .time = 1});
  const std::string before = read_file(place.file, 4096);
  UseLog log(place.file, UseLog::Writing::kNothing, Log::silent());
  CHECK(log.take().uses.size() == 1);
  log.use({.snapshot = kB, .area = Area::kResident, .time = 2});
  log.rewrite({});
  CHECK(read_file(place.file, 4096) == before);
}

TEST_CASE("without a place to write to, it is memory only") {
  UseLog log("/proc/nowhere/uses", UseLog::Writing::kFile, Log::silent());
  log.use({.snapshot = kA, .area = Area::kResident, .time = 1});
  CHECK(log.take().uses.empty());
}

}  // namespace
}  // namespace weightfs::cache
