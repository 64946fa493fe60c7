// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "policy/trace_number.hpp"
#include "policy/trace_parser.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::policy;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

Trace parsed(std::string_view text, const CsvColumns& columns = {}, std::size_t piece = 1 << 20) {
  TraceParser parser(columns);
  while (!text.empty()) {
    parser.feed(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  return std::move(parser).finish();
}

std::vector<std::uint32_t> artifacts(const Trace& trace) {
  std::vector<std::uint32_t> list;
  for (const TraceReference& reference : trace.references) list.push_back(reference.artifact);
  return list;
}

std::string oracle_record(std::uint32_t time, std::uint64_t object, std::uint32_t size,
                          std::int64_t next) {
  std::string out;
  const auto append = [&](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  };
  append(time, 4);
  append(object, 8);
  append(size, 4);
  append(static_cast<std::uint64_t>(next), 8);
  return out;
}

constexpr std::string_view kCsv =
    "ts_s,user,model,size_gib,host\n"
    "1.5,ann,m1,2,h1\n"
    "2,bob,m2,0.5,h2\n"
    "2,ann,m1,2,h1\n";

}  // namespace

TEST_CASE("columns of a CSV are guessed from the usual names and their endings") {
  const Trace trace = parsed(kCsv);
  REQUIRE(trace.references.size() == 3);
  CHECK(artifacts(trace) == std::vector<std::uint32_t>{0, 1, 0});
  CHECK(trace.references[0].time == 1500ms);
  CHECK(trace.references[1].time == 2000ms);
  CHECK(trace.references[0].bytes == 2ULL << 30);
  CHECK(trace.references[1].bytes == 1ULL << 29);
  CHECK(trace.references[1].consumer == 1);
  CHECK(trace.references[1].node == 1);
  CHECK(trace.artifacts == 2);
  CHECK(trace.consumers == 2);
  CHECK(trace.nodes == 2);
  CHECK(trace.has_times);
  CHECK(trace.has_sizes);
  CHECK(trace.skipped == 0);
}

TEST_CASE("columns of a CSV may be named, with a unit") {
  const std::string csv = "when,who,what,disk_gib,mb\n5,x,a,1,7\n";
  CHECK(parsed(csv, {.time = "when:ms", .artifact = "what", .consumer = "who", .size = "mb:MB"})
            .references[0]
            .bytes == 7'000'000);
  const Trace trace = parsed(csv, {.time = "when:ms", .artifact = "what", .size = "disk_gib"});
  CHECK(trace.references[0].time == 5ms);
  CHECK(trace.references[0].bytes == 1ULL << 30);
  CHECK(trace.consumers == 0);
  CHECK(parsed(csv, {.artifact = "what", .size = "disk_gib:B"}).references[0].bytes == 1);
  CHECK_FALSE(parsed(csv, {.artifact = "what"}).has_sizes);
}

TEST_CASE("a CSV that lacks a column says which there are") {
  CHECK_THROWS_MATCHES(
      parsed("x,y\n1,2\n"), Error,
      MessageMatches(ContainsSubstring("--artifact") && ContainsSubstring("x, y")));
  CHECK_THROWS_MATCHES(parsed(kCsv, {.size = "disk"}), Error,
                       MessageMatches(ContainsSubstring("no column 'disk'")));
  CHECK_THROWS_MATCHES(parsed(kCsv, {.size = "size_gib:apples"}), Error,
                       MessageMatches(ContainsSubstring("apples")));
  CHECK_THROWS_MATCHES(parsed(kCsv, {.artifact = "model:GiB"}), Error,
                       MessageMatches(ContainsSubstring("not a unit")));
}

TEST_CASE("rows that do not parse are counted, the first ones named") {
  std::string csv =
      "time,artifact,bytes\n1,a,10\nnoon,b,10\n2,,10\n3,c\n4,d,-5\n\n5,e,10\n6,f,nan\n";
  for (int i = 0; i < 3; ++i) csv += "x,y,z\n";
  const Trace trace = parsed(csv);
  CHECK(trace.references.size() == 2);
  CHECK(trace.skipped == 8);
  REQUIRE(trace.first_skipped.size() == TraceBuilder::kNamedSkips);
  CHECK(trace.first_skipped[0].line == 3);
  CHECK(trace.first_skipped[0].reason == "'noon' is not a time");
  CHECK(trace.first_skipped[1].reason == "has no artifact");
  CHECK(trace.first_skipped[2].reason == "has 2 fields, and 3 are needed");
  CHECK(trace.first_skipped[3].reason == "'-5' is not a size");
  CHECK(trace.first_skipped[4].line == 9);
}

TEST_CASE("quotes, tabs, semicolons, byte order marks and line ends of a CSV") {
  const Trace quoted =
      parsed("\xef\xbb\xbftime,artifact\r\n1,\"a,\"\"b\"\"\"\r\n2,\"a,\"\"b\"\"\"\r\n3,c");
  CHECK(artifacts(quoted) == std::vector<std::uint32_t>{0, 0, 1});
  CHECK(artifacts(parsed("time\tartifact\n1\ta,b\n2\ta\n")) == std::vector<std::uint32_t>{0, 1});
  CHECK(artifacts(parsed("time;artifact;user\n1;a;u\n2;b;u\n")) ==
        std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("references are in the order of time, those of one time as they came") {
  const Trace trace = parsed("time,artifact\n2,a\n1,b\n2,c\n1,d\n");
  CHECK(artifacts(trace) == std::vector<std::uint32_t>{1, 3, 0, 2});
  CHECK(artifacts(parsed("artifact,x\nb,1\na,2\nb,3\n")) == std::vector<std::uint32_t>{0, 1, 0});
}

TEST_CASE("of the events log references are read, and all else is passed over") {
  const Trace trace = parsed(
      R"({"time":"2026-03-01T12:00:00.250Z","event":"reference","snapshot":"aa","consumer":"p1","bytes":10})"
      "\n"
      R"({"time":1772366401,"event":"reference","snapshot":"aa","consumer":"p2","bytes":10,"more":[1]})"
      "\n"
      R"({"time":1,"event":"hit","snapshot":"aa","bytes":4})"
      "\n"
      R"({"time":2,"event":"reference"})"
      "\nnot json\n"
      R"({"time":1772366402.5,"event":"reference","snapshot":"bb","consumer":null,"bytes":20})");
  REQUIRE(trace.references.size() == 3);
  CHECK(trace.references[0].time == 1772366400250ms);
  CHECK(trace.references[1].time == 1772366401000ms);
  CHECK(trace.references[2].time == 1772366402500ms);
  CHECK(artifacts(trace) == std::vector<std::uint32_t>{0, 0, 1});
  CHECK(trace.references[2].bytes == 20);
  CHECK(trace.consumers == 3);
  CHECK(trace.has_sizes);
  CHECK(trace.skipped == 2);
  CHECK(trace.first_skipped[0].reason == "has no snapshot");
  CHECK(trace.first_skipped[1].line == 5);
}

TEST_CASE("oracleGeneral is known by its content, and a record that is cut off is named") {
  const std::string records = oracle_record(0, 0x6162636465666768, 100, 1) +
                              oracle_record(0x41424344, 7, 200, -1) +
                              oracle_record(0x41424345, 0x6162636465666768, 100, -1);
  const Trace trace = parsed(records + "abc");
  REQUIRE(trace.references.size() == 3);
  CHECK(artifacts(trace) == std::vector<std::uint32_t>{0, 1, 0});
  CHECK(trace.references[1].time == 0x41424344s);
  CHECK(trace.references[1].bytes == 200);
  CHECK(trace.consumers == 0);
  CHECK(trace.skipped == 1);
  CHECK(trace.first_skipped[0].line == 4);
  // All of it text, but for the last number.
  const std::string texts = oracle_record(0x41424344, 0x4142434445464748, 0x41424344, 0x4142);
  CHECK(parsed(texts + texts).references.size() == 2);
}

TEST_CASE("it does not matter how the bytes are cut") {
  const std::string records = oracle_record(1, 2, 3, 4) + oracle_record(5, 6, 7, -1);
  for (const std::string_view whole : {kCsv, std::string_view(records)}) {
    const Trace expected = parsed(whole);
    for (std::size_t piece = 1; piece < 40; ++piece) {
      CAPTURE(piece);
      const Trace trace = parsed(whole, {}, piece);
      CHECK(artifacts(trace) == artifacts(expected));
      CHECK(trace.references.back().bytes == expected.references.back().bytes);
      CHECK(trace.skipped == 0);
    }
  }
}

TEST_CASE("what is no trace is refused with a reason") {
  CHECK_THROWS_AS(parsed(""), Error);
  CHECK_THROWS_AS(parsed("artifact,time\n"), Error);
  CHECK_THROWS_MATCHES(parsed("artifact,time\na,b\n"), Error,
                       MessageMatches(ContainsSubstring("line 2: 'b' is not a time")));
  CHECK_THROWS_MATCHES(parsed("\x28\xb5\x2f\xfd and so on, until there is enough"), Error,
                       MessageMatches(ContainsSubstring("zstd")));
  CHECK_THROWS_MATCHES(parsed("artifact\n" + std::string(TraceParser::kLongestLine + 1, 'x')),
                       Error, MessageMatches(ContainsSubstring("line 2")));
}

TEST_CASE("times of traces") {
  CHECK(trace_time("12", 1000) == 12s);
  CHECK(trace_time("0.0015", 1000) == 2ms);
  CHECK(trace_time("-1", 1000) == -1s);
  CHECK(trace_time("1500000", 1e-6) == 2ms);
  CHECK(trace_time("1970-01-02T00:00:00Z", 1000) == 24h);
  CHECK(trace_time("1970-01-02 00:00:00", 1000) == 24h);
  CHECK(trace_time("1970-01-01T01:00:00.5+01:00", 1000) == 500ms);
  CHECK(trace_time("1970-01-01T00:00:00-0130", 1000) == 90min);
  for (const std::string_view text :
       {"", "x", "1x", "nan", "inf", "1e300", "1970-13-01T00:00:00Z", "1970-02-30T00:00:00Z",
        "1970-01-01T24:00:00Z", "1970-01-01", "1970-01-01T00:00:00+1", "1970-01-01T00:00:00 Z"}) {
    CAPTURE(text);
    CHECK_FALSE(trace_time(text, 1000));
  }
}

TEST_CASE("sizes of traces") {
  CHECK(trace_size("18446744073709551615", 1) == 18446744073709551615ULL);
  CHECK(trace_size("544.0", 1ULL << 30) == 544ULL << 30);
  CHECK(trace_size("0.3", 1000) == 300);
  CHECK(trace_size("10GiB", 1) == 10ULL << 30);
  for (const std::string_view text : {"", "x", "-1", "nan", "inf", "1e40", "10 apples"}) {
    CAPTURE(text);
    CHECK_FALSE(trace_size(text, 1));
  }
}

TEST_CASE("whatever the bytes are, they are a trace or an error") {
  const std::vector<std::string> pieces{"artifact,time\n",
                                        "a,1\n",
                                        "\"",
                                        ",",
                                        "\n",
                                        "{",
                                        "}",
                                        R"({"event":"reference","snapshot":"a"})",
                                        "\xff",
                                        "[",
                                        "1e999",
                                        std::string(1, '\0'),
                                        oracle_record(1, 2, 3, 4)};
  for (unsigned seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::string bytes;
    for (auto count = random() % 30; count > 0; --count) bytes += pieces[random() % pieces.size()];
    try {
      const Trace trace = parsed(bytes, {}, 1 + random() % 20);
      CHECK_FALSE(trace.references.empty());
    } catch (const Error& error) {
      CHECK(std::string_view(error.what()) != "");
    }
  }
}
