// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/quantity.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

#include <utility>
#include <vector>

using namespace std::chrono_literals;
using weightfs::exact_duration;
using weightfs::exact_rate;
using weightfs::exact_size;
using weightfs::parse_duration;
using weightfs::parse_rate;
using weightfs::parse_size;
using weightfs::readable_duration;
using weightfs::readable_size;

TEST_CASE("sizes are read with decimal and binary units") {
  const std::vector<std::pair<const char*, std::uint64_t>> rows{
      {"0", 0},
      {"1234", 1234},
      {"7B", 7},
      {"500GB", 500'000'000'000},
      {"10GiB", 10ULL << 30},
      {"10 GiB", 10ULL << 30},
      {"10gib", 10ULL << 30},
      {"8MiB", 8ULL << 20},
      {"1.5TB", 1'500'000'000'000},
      {"0.5KiB", 512},
      {"2.50 kB", 2500},
      {"18446744073709551615", ~0ULL},
      {"15.999PiB", 0},  // not whole bytes: below
  };
  for (const auto& [text, bytes] : rows) {
    CAPTURE(text);
    if (std::string_view(text) == "15.999PiB") {
      CHECK_THROWS_AS(parse_size(text), weightfs::Error);
    } else {
      CHECK(parse_size(text) == bytes);
    }
  }
}

TEST_CASE("what is not a size is refused with the right form in the message") {
  for (const char* text :
       {"", "GB", "-1", "+1", "1.GB", ".5GB", "1  GB", "1 ", "1G", "1Gi", "10 GB ", "0x10", "1e9",
        "1.5", "18446744073709551616", "99999999PB", "1,000", "0.00000000000000000000001PB"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_size(text), weightfs::Error);
  }
  try {
    (void)parse_size("ten");
    FAIL("accepted");
  } catch (const weightfs::Error& error) {
    CHECK(error.code() == weightfs::Errc::kInvalid);
    CHECK(std::string(error.what()) ==
          "'ten' is not a size; write bytes, or a number and a unit as in 500GB or 10GiB");
  }
}

TEST_CASE("durations are read as sums of units in falling order") {
  const std::vector<std::pair<const char*, std::chrono::milliseconds>> rows{
      {"0", 0ms},
      {"0s", 0ms},
      {"30s", 30s},
      {"12h", 12h},
      {"2m30s", 150s},
      {"500ms", 500ms},
      {"1d2h3m4s5ms", 93'784'005ms},
      {"90m", 90min},
      {"1h0m", 1h},
      {"1000d", 24'000h},
  };
  for (const auto& [text, time] : rows) {
    CAPTURE(text);
    CHECK(parse_duration(text) == time);
  }
}

TEST_CASE("what is not a duration is refused") {
  for (const char* text : {"", "30", "s", "-1s", "1.5h", "30s2m", "1s1s", "1 s", "1w", "1S", "2m30",
                           "99999999999999999999s", "400000d"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_duration(text), weightfs::Error);
  }
}

TEST_CASE("exact texts are short and read back as the same quantity") {
  const std::vector<std::pair<std::uint64_t, const char*>> sizes{{0, "0"},
                                                                 {1, "1"},
                                                                 {999, "999"},
                                                                 {1000, "1kB"},
                                                                 {1024, "1KiB"},
                                                                 {8ULL << 20, "8MiB"},
                                                                 {500'000'000'000, "500GB"},
                                                                 {1234567, "1234567"},
                                                                 {1ULL << 50, "1PiB"},
                                                                 {~0ULL, "18446744073709551615"}};
  for (const auto& [bytes, text] : sizes) {
    CHECK(exact_size(bytes) == text);
    CHECK(parse_size(exact_size(bytes)) == bytes);
  }
  for (const auto time :
       {0ms, 1ms, 999ms, 1000ms, 120'000ms, 150'000ms, 86'400'000ms, 93'784'005ms}) {
    CHECK(parse_duration(exact_duration(time)) == time);
  }
  CHECK(exact_duration(150s) == "2m30s");
  CHECK(exact_duration(0s) == "0s");
}

TEST_CASE("rates are sizes per second, or none") {
  CHECK(parse_rate("500MB/s") == 500'000'000);
  CHECK(parse_rate("500MB") == 500'000'000);
  CHECK(parse_rate("1.5 GiB/s") == 1'610'612'736);
  CHECK(parse_rate("0") == 0);
  CHECK(parse_rate("unlimited") == 0);
  for (const char* text : {"", "/s", "MB/s", "5MB/h", "5MB/s/s", "5Mbit", "Unlimited", "-1"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_rate(text), weightfs::Error);
  }
  CHECK(exact_rate(0) == "unlimited");
  CHECK(exact_rate(500'000'000) == "500MB/s");
  CHECK(exact_rate(8 << 20) == "8MiB/s");
  CHECK(exact_rate(1'234'567) == "1234567B/s");
  CHECK(parse_rate(exact_rate(1'234'567)) == 1'234'567);
}

TEST_CASE("readable texts have three digits and never four") {
  CHECK(readable_size(0) == "0 B");
  CHECK(readable_size(999) == "999 B");
  CHECK(readable_size(1000) == "1.00 kB");
  CHECK(readable_size(9'995) == "10.0 kB");
  CHECK(readable_size(999'499) == "999 kB");
  CHECK(readable_size(999'500) == "1.00 MB");
  CHECK(readable_size(45'600'000'000) == "45.6 GB");
  CHECK(readable_size(~0ULL) == "18.4 EB");
  CHECK(readable_duration(3s) == "3s");
  CHECK(readable_duration(125s) == "2m 05s");
  CHECK(readable_duration(72min) == "1h 12m");
  CHECK(readable_duration(76h) == "3d 04h");
  CHECK(readable_duration(-5s) == "0s");
}
