// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/store_opening.hpp"

#include "../control/temporary_directory.hpp"
#include "base/error.hpp"
#include "base/file.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace weightfs;
using namespace weightfs::tests;

TEST_CASE("a store that cannot be opened is refused, but not where readers wait already") {
  const SystemClock clock;
  store::Store store(clock, Log::silent());
  const cli::Settings settings{.stores = {"/sys/weightfs/store"}};  // nobody can make one there
  CHECK_THROWS_AS(cli::open_volumes(store, settings, cli::Mount::kNew), Error);
  CHECK(store.volumes().empty());
  cli::open_volumes(store, settings, cli::Mount::kTakenOver);
  REQUIRE(store.volumes().size() == 1);
  CHECK(store.volumes()[0].state == store::VolumeState::kNotOpened);
  CHECK_FALSE(store.writable());
}

TEST_CASE("what a person has to mend is refused in any case") {
  const TemporaryDirectory directory;
  const SystemClock clock;
  store::Store store(clock, Log::silent());
  const cli::Settings settings{.stores = {directory.path()}};
  write_file_durably(directory.path() / "thesis.tex", "years of work");
  CHECK_THROWS_AS(cli::open_volumes(store, settings, cli::Mount::kTakenOver), Error);
  CHECK(store.volumes().empty());
}
