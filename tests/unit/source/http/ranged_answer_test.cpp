// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/ranged_answer.hpp"

#include "source/failure.hpp"
#include "source/http/content_range.hpp"
#include "source/http/validator.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using weightfs::ByteRange;
using weightfs::Errc;
using weightfs::test::failure_of;
using namespace weightfs::source;
using weightfs::net::ResponseHead;

namespace {

using Lines = std::multimap<std::string, std::string>;

ResponseHead head(int status, Lines headers = {}) {
  return {.status = status, .effective_url = "", .headers = std::move(headers)};
}

}  // namespace

TEST_CASE("a Content-Range is taken apart, and nothing else is") {
  const auto whole = parse_content_range("bytes 0-9/10");
  REQUIRE(whole);
  CHECK(whole->range == ByteRange{0, 10});
  CHECK(whole->total == 10);
  CHECK(parse_content_range("bytes 5-5/*")->range == ByteRange{5, 6});
  CHECK_FALSE(parse_content_range("bytes 5-5/*")->total);
  CHECK(parse_content_range("bytes */7")->total == 7);
  CHECK_FALSE(parse_content_range("bytes */7")->range);
  CHECK(parse_content_range("bytes 0-9223372036854775806/9223372036854775807"));
  for (const char* bad :
       {"", "bytes", "bytes 0-9", "bytes 0-9/", "bytes 9-0/10", "bytes 0-10/10", "bytes -9/10",
        "bytes 0-/10", "bytes +0-9/10", "bytes 0 - 9/10", "bytes 0-9/10 ", "bytes 0-9,12-13/20",
        "items 0-9/10", "bytes=0-9/10", "bytes */*", "bytes 0x0-9/10",
        "bytes 0-18446744073709551615/*", "bytes 0-99999999999999999999999/*", "bytes 0-9/-1"}) {
    INFO(bad);
    CHECK_FALSE(parse_content_range(bad));
  }
}

TEST_CASE("answers to bytes 100-199 of 1000 that are taken") {
  const ByteRange range{100, 200};
  const std::vector<std::pair<ResponseHead, ByteRange>> rows = {
      {head(206, {{"content-range", "bytes 100-199/1000"}, {"content-length", "100"}}), {100, 200}},
      {head(206, {{"content-range", "bytes 100-199/*"}}), {100, 200}},
      {head(206, {{"content-range", "bytes 100-149/1000"}}), {100, 150}},
      {head(206, {{"content-range", "bytes 100-199/1000"}, {"content-encoding", "Identity"}}),
       {100, 200}},
      {head(200, {{"content-length", "1000"}}), {0, 1000}},
  };
  for (const auto& [answer, body] : rows) {
    CHECK(check_answer(answer, range, 1000).body == body);
    CHECK((check_answer(answer, range, 1000).kind == RangedAnswer::Kind::kWhole) ==
          (answer.status == 200));
  }
}

TEST_CASE("answers to bytes 100-199 of 1000 that are refused") {
  struct Row {
    std::string name;
    ResponseHead answer;
    Errc code;
    bool transient = false;
  };
  const auto partial = [](const std::string& range) {
    return head(206, {{"content-range", range}});
  };
  const std::vector<Row> rows = {
      {"an earlier range", partial("bytes 0-99/1000"), Errc::kInvalid},
      {"a range that begins before", partial("bytes 99-199/1000"), Errc::kInvalid},
      {"a range that begins later", partial("bytes 101-199/1000"), Errc::kInvalid},
      {"a range that ends later", partial("bytes 100-200/1000"), Errc::kInvalid},
      {"the whole as a range", partial("bytes 0-999/1000"), Errc::kInvalid},
      {"no range", head(206), Errc::kInvalid},
      {"garbage for a range", partial("bytes 100-199"), Errc::kInvalid},
      {"an unsatisfied range", partial("bytes */1000"), Errc::kInvalid},
      {"two ranges",
       head(206, {{"content-range", "bytes 100-199/1000"}, {"content-range", "bytes 0-9/1000"}}),
       Errc::kInvalid},
      {"a shorter total", partial("bytes 100-199/999"), Errc::kChanged},
      {"a longer total", partial("bytes 100-199/1001"), Errc::kChanged},
      {"another length than its range",
       head(206, {{"content-range", "bytes 100-199/1000"}, {"content-length", "99"}}),
       Errc::kInvalid},
      {"a length that is none",
       head(206, {{"content-range", "bytes 100-199/1000"}, {"content-length", "-1"}}),
       Errc::kInvalid},
      {"several parts", head(206, {{"content-type", "multipart/byteranges; boundary=x"}}),
       Errc::kUnsupported},
      {"compressed",
       head(206, {{"content-range", "bytes 100-199/1000"}, {"content-encoding", "gzip"}}),
       Errc::kUnsupported},
      {"compressed whole", head(200, {{"content-length", "1000"}, {"content-encoding", "br"}}),
       Errc::kUnsupported},
      {"the whole of another size", head(200, {{"content-length", "999"}}), Errc::kChanged},
      {"the whole of no size", head(200), Errc::kUnsupported},
      {"no content", head(204), Errc::kInvalid},
      {"not modified", head(304), Errc::kInvalid},
      {"a redirect to nowhere", head(302), Errc::kInvalid},
      {"bad request", head(400), Errc::kInvalid},
      {"unauthorized", head(401), Errc::kPermission},
      {"forbidden", head(403), Errc::kPermission},
      {"not found", head(404), Errc::kNotFound},
      {"gone", head(410), Errc::kNotFound},
      {"precondition failed", head(412), Errc::kChanged},
      {"range not satisfiable", head(416, {{"content-range", "bytes */50"}}), Errc::kChanged},
      {"request timeout", head(408), Errc::kUnavailable, true},
      {"too early", head(425), Errc::kUnavailable, true},
      {"too many requests", head(429), Errc::kUnavailable, true},
      {"server error", head(500), Errc::kUnavailable, true},
      {"bad gateway", head(502), Errc::kUnavailable, true},
      {"unavailable", head(503), Errc::kUnavailable, true},
      {"gateway timeout", head(504), Errc::kUnavailable, true},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const auto failure =
        failure_of([&] { static_cast<void>(check_answer(row.answer, ByteRange{100, 200}, 1000)); });
    REQUIRE(failure);
    CHECK(failure->code == row.code);
    CHECK(failure->transient == row.transient);
  }
}

TEST_CASE("what a busy server asks for is passed on") {
  const auto failure = failure_of([] {
    static_cast<void>(check_answer(head(503, {{"retry-after", "7"}}), ByteRange{0, 1}, 1));
  });
  CHECK(failure->retry_after == 7s);
  CHECK_FALSE(failure_of([] {
                static_cast<void>(check_answer(head(503), ByteRange{0, 1}, 1));
              })->retry_after);
}

TEST_CASE("a validator keeps what a server said, as text and back") {
  const ResponseHead full =
      head(200, {{"etag", "\"a;b=%\xff\""}, {"last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"}});
  const Validator validator = Validator::of(full, 1234);
  CHECK(Validator::parse(validator.text()) == validator);
  CHECK(validator.text().find_first_of("\xff\n ") == std::string::npos);
  const Validator bare = Validator::of(head(200), 0);
  CHECK(bare.text() == "length=0");
  CHECK(Validator::parse("length=0") == bare);
  for (const char* bad :
       {"", "length=", "length=-1", "etag=%22x%22", "size=1;mtime=2;inode=3", "length=1;more=2"}) {
    CHECK(failure_of([&] { static_cast<void>(Validator::parse(bad)); })->code == Errc::kInvalid);
  }
}

TEST_CASE("a precondition is made of what the server can compare") {
  const std::string date = "Sun, 06 Nov 1994 08:49:37 GMT";
  using Header = std::pair<std::string, std::string>;
  CHECK(Validator{"\"x\"", date, 1}.precondition() == Header("If-Match", "\"x\""));
  CHECK(Validator{"W/\"x\"", date, 1}.precondition() == Header("If-Unmodified-Since", date));
  CHECK(Validator{"x", date, 1}.precondition() == Header("If-Unmodified-Since", date));
  CHECK(Validator{"\"x\", \"y\"", date, 1}.precondition() == Header("If-Unmodified-Since", date));
  CHECK_FALSE(Validator{"W/\"x\"", "", 1}.precondition());
  CHECK_FALSE(Validator{"", "yesterday", 1}.precondition());
}

TEST_CASE("another version is told by what both answers say") {
  const Validator both{"\"x\"", "date 1", 1};
  CHECK_FALSE(both.difference(head(206, {{"etag", "\"x\""}, {"last-modified", "date 2"}})));
  CHECK(both.difference(head(206, {{"etag", "\"y\""}, {"last-modified", "date 1"}})));
  CHECK(both.difference(head(206, {{"etag", "W/\"x\""}})));
  CHECK_FALSE(both.difference(head(206, {{"last-modified", "date 1"}})));
  CHECK(both.difference(head(206, {{"last-modified", "date 2"}})));
  CHECK(both.difference(head(206)));
  const Validator dated{"", "date 1", 1};
  CHECK_FALSE(dated.difference(head(206, {{"etag", "\"y\""}, {"last-modified", "date 1"}})));
  CHECK(dated.difference(head(206, {{"etag", "\"y\""}})));
  CHECK_FALSE(Validator{"", "", 1}.difference(head(206, {{"etag", "\"y\""}})));
}
