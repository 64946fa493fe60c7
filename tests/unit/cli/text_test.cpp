// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/freed_text.hpp"
#include "cli/lease_text.hpp"
#include "cli/printable.hpp"
#include "cli/progress_line.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <string>
#include <utility>

using namespace std::chrono_literals;
using namespace weightfs;
using namespace weightfs::cli;

TEST_CASE("text is shown as it is unless a terminal would obey it or it is no text") {
  const std::pair<const char*, const char*> rows[] = {
      {"plain", "plain"},
      {"caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80"},
      {"a\x1b[2Jb", R"(a\x1b[2Jb)"},
      {"tab\tnewline\n\x7f", R"(tab\x09newline\x0a\x7f)"},
      {"\xff\xfe", R"(\xff\xfe)"},
      {"\xc2\x9b", R"(\xc2\x9b)"},
      {"cut \xe2\x82", R"(cut \xe2\x82)"},
  };
  for (const auto& [text, shown] : rows) CHECK(printable(text) == shown);
  CHECK(width_of("caf\xc3\xa9") == 4);
}

TEST_CASE("progress fits the line, whatever there is to say") {
  const ProgressView view{
      .title = "org/m", .done = 1'200'000'000, .total = 3'400'000'000, .rate = 8e8};
  CHECK(progress_text(view, 100) ==
        "org/m  [==============>                         ]  1.20 GB of 3.40 GB   35%  800 MB/s  3s "
        "left");
  CHECK(progress_text(view, 60) == "org/m  1.20 GB of 3.40 GB   35%  800 MB/s  3s left");
  for (unsigned columns = 1; columns < 140; ++columns) {
    CHECK(width_of(progress_text(view, columns)) <= columns);
  }
  CHECK(progress_text({.title = "x", .done = 0, .total = 0}, 80) == "x");
  CHECK(progress_text({.title = "x", .done = 5, .total = 0}, 80) == "x  5 B");
  // More than there should be is still no more than everything.
  CHECK(progress_text({.title = "x", .done = 20, .total = 10}, 40) ==
        "x  [==============]  20 B of 10 B  100%");
}

TEST_CASE("the rate forgets the past over some seconds") {
  RateEstimate estimate;
  RateEstimate::TimePoint now{};
  CHECK_FALSE(estimate.rate());
  estimate.update(now, 1000);
  CHECK_FALSE(estimate.rate());
  estimate.update(now += 1s, 2000);
  CHECK(*estimate.rate() == Catch::Approx(1000));
  estimate.update(now, 5000);  // no time has passed: nothing to go by
  CHECK(*estimate.rate() == Catch::Approx(1000));
  for (int i = 0; i < 60; ++i) estimate.update(now += 1s, 2000);
  CHECK(*estimate.rate() < 1);
}

TEST_CASE("a lease says what it waits for") {
  api::Lease lease{.missing_bytes = 5, .unverified_bytes = 3, .at_risk = true};
  CHECK(lease_state(lease) == "5 B missing, at risk");
  lease = {.unverified_bytes = 3, .late = true};
  CHECK(lease_state(lease) == "3 B to be verified, late");
  CHECK(lease_state(api::Lease{}) == "not complete");  // of a snapshot that nobody knows any more
  CHECK(lease_state({.complete = true}) == "complete");
}

TEST_CASE("what was freed is said in a line") {
  CHECK(freed_text({.name = "a", .blobs = 1, .bytes = 5}, "evict", "evicted") ==
        "a: evicted, 1 file and 5 B freed");
  CHECK(
      freed_text({.name = "a", .dry_run = true, .shared_blobs = 2, .shared_bytes = 7}, "remove",
                 "removed") ==
      "a: would remove, and free 0 files and 0 B; 2 files (7 B) stay, another model has them too");
}
