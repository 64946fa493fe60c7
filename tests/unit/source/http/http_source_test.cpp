// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/http_source.hpp"

#include "io/scratch_file.hpp"
#include "source/failure.hpp"
#include "source/http/site.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using weightfs::ByteRange;
using weightfs::Errc;
using weightfs::Error;
using weightfs::snapshot::File;
using weightfs::test::answer;
using weightfs::test::CollectingSink;
using weightfs::test::failure_of;
using weightfs::test::kDate;
using weightfs::test::kDateSeconds;
using weightfs::test::known_file;
using weightfs::test::pattern;
using weightfs::test::RangedOrigin;
using weightfs::test::SeenRequest;
using weightfs::test::Site;
using Connection = weightfs::test::ScriptedServer::Connection;

TEST_CASE("a single file is named by its URL and known by its validator") {
  const std::string content = pattern(1000);
  Site site("/dir/my%20model.gguf?sig=1",
            {{"/dir/my%20model.gguf?sig=1", {content, "\"v1\"", kDate}}});
  const auto snapshot = site.source.resolve({});
  REQUIRE(snapshot.files().size() == 1);
  const File file = snapshot.files()[0];
  CHECK(file.path == "my model.gguf");
  CHECK(file.size == 1000);
  CHECK(file.mtime == kDateSeconds);
  CHECK_FALSE(file.sha256);
  CHECK(snapshot.provisional());
  CHECK(site.read(file, {10, 20}) == content.substr(10, 10));
  CHECK(site.origin.server().requests().back().header("if-match") == "\"v1\"");
  CHECK(site.origin.count("HEAD") == 1);

  // A later version, of the same size: refused by the server, and before that by us.
  site.origin.put("/dir/my%20model.gguf?sig=1", {std::string(1000, 'y'), "\"v2\"", kDate});
  CHECK(failure_of([&] { static_cast<void>(site.read(file, {10, 20})); })->code == Errc::kChanged);
  CHECK(site.source.resolve({}).files()[0].validator != file.validator);
}

TEST_CASE("a directory without its slash is no file, whatever is behind the redirect") {
  Site site("/models/a%20b");
  for (const int status : {200, 403, 404, 500}) {
    CAPTURE(status);
    for (const bool head_works : {true, false}) {
      site.origin.set_fault([=](const SeenRequest& request, Connection& connection) {
        if (request.method == "HEAD" && !head_works) {
          connection.send(answer(405, {}, ""));
        } else if (request.target.ends_with('/')) {
          connection.send(answer(status, {}, request.method == "HEAD" ? "" : "<html>"));
        } else {
          connection.send(answer(301, {{"Location", "/models/a%20b/"}}, ""));
        }
        return true;
      });
      const auto failure = failure_of([&] { static_cast<void>(site.source.resolve({})); });
      REQUIRE(failure);
      CHECK(failure->code == Errc::kInvalid);
      CHECK(failure->message ==
            site.origin.url("/models/a%20b") + ": is a directory: put a '/' at the end of its URL");
    }
  }
}

TEST_CASE("a file whose redirect leads to a place that ends with a slash is one") {
  Site site("/dir/model.bin", {{"/", {pattern(100), "\"v1\"", kDate}}});
  site.origin.set_fault([](const SeenRequest& request, Connection& connection) {
    if (request.target == "/") return false;
    connection.send(answer(302, {{"Location", "/"}}, ""));
    return true;
  });
  CHECK(site.source.resolve({}).files().at(0).size == 100);
}

TEST_CASE("any range arrives whole, and paths are encoded") {
  const std::string content = pattern(300'000);
  const std::string path = "a#b?c%d/e f\xff";
  Site site("/m/", {{"/m/a%23b%3Fc%25d/e%20f%FF", {content, "\"v1\"", kDate}}});
  const File file = known_file(path, content);
  for (const ByteRange range :
       {ByteRange{0, content.size()}, ByteRange{0, 1},
        ByteRange{content.size() - 1, content.size()}, ByteRange{4'099, 200'001}}) {
    CHECK((site.read(file, range) == content.substr(range.begin, range.size())));
  }
  CHECK(site.origin.server().connections() == 1);
  CHECK(site.source.serves_ranges());
}

TEST_CASE("a server that sends the whole file gives the range, and no more is taken") {
  const std::string content = pattern(3 << 20);
  Site site("/m/");
  site.origin.set_fault([&](const SeenRequest&, Connection& connection) {
    connection.send(answer(200, {}, content));
    return true;
  });
  const File file = known_file("f", content);
  CHECK((site.read(file, {0, content.size()}) == content));
  CHECK(site.source.serves_ranges());
  CHECK((site.read(file, {100'000, 200'000}) == content.substr(100'000, 100'000)));
  CHECK_FALSE(site.source.serves_ranges());
  CHECK((site.read(file, {3'000'000, content.size()}) == content.substr(3'000'000)));
  CHECK(site.http.counters().bytes < 2 * content.size() + (2 << 20));
}

TEST_CASE("that a server sends whole files is known before a byte of one, until it sends a range") {
  const std::string content = pattern(3 << 20);
  bool whole = true;
  Site site("/m/");
  site.origin.set_fault([&](const SeenRequest&, Connection& connection) {
    connection.send(
        whole ? answer(200, {}, content)
              : answer(206, {{"Content-Range", "bytes 10-19/3145728"}}, content.substr(10, 10)));
    return true;
  });
  const File file = known_file("f", content);
  CollectingSink sink(2'000'000);
  std::vector<bool> ranges;
  sink.after_skip = [&] { ranges.push_back(site.source.serves_ranges()); };
  site.source.read(file, {2'000'000, 2'000'100}, sink, {});
  CHECK(sink.bytes == content.substr(2'000'000, 100));
  CHECK(sink.bytes_skipped == 2'000'000);
  REQUIRE_FALSE(ranges.empty());
  CHECK(ranges == std::vector<bool>(ranges.size(), false));
  whole = false;
  CHECK(site.read(file, {10, 20}) == content.substr(10, 10));
  CHECK(site.source.serves_ranges());
}

TEST_CASE("a range that a server sends in pieces is put together, within reason") {
  const std::string content = pattern(10'000);
  std::size_t piece = 3'000;
  Site site("/m/");
  site.origin.set_fault([&](const SeenRequest& request, Connection& connection) {
    const std::size_t first = std::stoul(request.header("range")->substr(6));
    const std::string body = content.substr(first, piece);
    connection.send(
        answer(206,
               {{"Content-Range", "bytes " + std::to_string(first) + "-" +
                                      std::to_string(first + body.size() - 1) + "/10000"}},
               body));
    return true;
  });
  const File file = known_file("f", content);
  CHECK((site.read(file, {500, 10'000}) == content.substr(500)));
  piece = 10;
  CHECK(failure_of([&] { static_cast<void>(site.read(file, {500, 10'000})); })->transient);
}

TEST_CASE("answers that are not what was asked for never reach the sink") {
  const std::string content = pattern(1000);
  const auto range_answer = [&](const std::string& range, const std::string& body) {
    return answer(206, {{"Content-Range", range}, {"ETag", "\"v1\""}}, body);
  };
  struct Row {
    std::string name;
    std::string bytes;
    Errc code;
    bool transient;
    std::size_t delivered;
  };
  const std::vector<Row> rows = {
      {"another range", range_answer("bytes 0-99/1000", content.substr(0, 100)), Errc::kInvalid,
       false, 0},
      {"another total", range_answer("bytes 100-199/2000", content.substr(100, 100)),
       Errc::kChanged, false, 0},
      {"another ETag",
       answer(206, {{"Content-Range", "bytes 100-199/1000"}, {"ETag", "\"v2\""}},
              content.substr(100, 100)),
       Errc::kChanged, false, 0},
      {"no ETag", answer(206, {{"Content-Range", "bytes 100-199/1000"}}, content.substr(100, 100)),
       Errc::kChanged, false, 0},
      {"the whole of another version", answer(200, {{"ETag", "\"v2\""}}, content), Errc::kChanged,
       false, 0},
      {"412", answer(412, {}, ""), Errc::kChanged, false, 0},
      {"416", answer(416, {{"Content-Range", "bytes */10"}}, ""), Errc::kChanged, false, 0},
      {"404", answer(404, {}, "gone"), Errc::kNotFound, false, 0},
      {"403", answer(403, {}, "no"), Errc::kPermission, false, 0},
      {"503", answer(503, {}, "later"), Errc::kUnavailable, true, 0},
      {"compressed",
       answer(206, {{"Content-Range", "bytes 100-199/1000"}, {"Content-Encoding", "gzip"}},
              content.substr(100, 100)),
       Errc::kUnsupported, false, 0},
      {"multipart",
       answer(206, {{"Content-Type", "multipart/byteranges; boundary=b"}}, "--b\r\n\r\n--b--"),
       Errc::kUnsupported, false, 0},
      {"an error page instead", answer(200, {}, "<html>log in</html>"), Errc::kChanged, false, 0},
      {"short",
       answer(
           206,
           {{"Content-Range", "bytes 100-199/1000"}, {"ETag", "\"v1\""}, {"Content-Length", "100"}},
           content.substr(100, 60)),
       Errc::kUnavailable, true, 60},
      {"short, without a length",
       "HTTP/1.1 206 P\r\nETag: \"v1\"\r\nContent-Range: bytes 100-199/1000\r\n\r\n" +
           content.substr(100, 60),
       Errc::kUnavailable, true, 60},
      {"longer, without a length",
       "HTTP/1.1 206 P\r\nETag: \"v1\"\r\nContent-Range: bytes 100-199/1000\r\n\r\n" +
           content.substr(100, 101),
       Errc::kInvalid, false, 0},
      {"longer, in chunks",
       answer(206,
              {{"Content-Range", "bytes 100-199/1000"},
               {"ETag", "\"v1\""},
               {"Transfer-Encoding", "chunked"}},
              "64\r\n" + content.substr(100, 100) + "\r\n5\r\nextra\r\n0\r\n\r\n"),
       Errc::kInvalid, false, 100},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Site site("/f", {{"/f", {content, "\"v1\"", ""}}});
    const File file = site.source.resolve({}).files().at(0);
    site.origin.set_fault([&](const SeenRequest&, Connection& connection) {
      connection.send(row.bytes);
      connection.close();
      return true;
    });
    CollectingSink sink(100);
    const auto failure = failure_of([&] { site.source.read(file, {100, 200}, sink, {}); });
    REQUIRE(failure);
    INFO(failure->message);
    CHECK(failure->code == row.code);
    CHECK(failure->transient == row.transient);
    CHECK((sink.bytes == content.substr(100, row.delivered)));
    CHECK_FALSE(sink.gap);
    CHECK(failure->message.find("\"f\" bytes 100-199 from 127.0.0.1:") == 0);
  }
}

TEST_CASE("a body longer than its length is cut where it was promised to end") {
  const std::string content = pattern(1000);
  Site site("/m/");
  site.origin.set_fault([&](const SeenRequest&, Connection& connection) {
    connection.send(
        answer(206, {{"Content-Range", "bytes 0-99/1000"}, {"Content-Length", "100"}}, content));
    return true;
  });
  const File file = known_file("f", content);
  for (int i = 0; i < 3; ++i) CHECK((site.read(file, {0, 100}) == content.substr(0, 100)));
}

TEST_CASE("a stall, a reset and a refusal may be tried again") {
  const std::string content = pattern(1000);
  const std::string half =
      answer(206, {{"Content-Range", "bytes 0-999/1000"}, {"Content-Length", "1000"}},
             content.substr(0, 500));
  Site site("/m/", {{"/m/f", {content, "", ""}}}, 200ms);
  const File file = known_file("f", content);
  site.origin.set_fault([&](const SeenRequest&, Connection& connection) {
    connection.send(half);
    connection.stall();
    return true;
  });
  CollectingSink sink(0);
  const auto stalled = failure_of([&] { site.source.read(file, {0, 1000}, sink, {}); });
  CHECK(stalled->code == Errc::kTimedOut);
  CHECK(stalled->transient);
  CHECK((sink.bytes == content.substr(0, 500)));

  site.origin.set_fault([&](const SeenRequest&, Connection& connection) {
    connection.reset();
    return true;
  });
  const auto reset = failure_of([&] { static_cast<void>(site.read(file, {0, 1000})); });
  CHECK(reset->code == Errc::kUnavailable);
  CHECK(reset->transient);

  site.origin.set_fault({});
  CollectingSink rest(500);
  site.source.read(file, {500, 1000}, rest, {});
  CHECK((sink.bytes + rest.bytes == content));
}

TEST_CASE("redirects in a circle are an error, to another host they work") {
  const std::string content = pattern(1000);
  RangedOrigin cdn({{"/blob?sig=1", {content, "", ""}}});
  Site site("/m/");
  site.origin.set_fault([&](const SeenRequest& request, Connection& connection) {
    const std::string to = request.target == "/m/f" ? cdn.url("/blob?sig=1") : "/m/circle";
    connection.send(answer(302, {{"Location", to}}, ""));
    return true;
  });
  CHECK((site.read(known_file("f", content), {5, 500}) == content.substr(5, 495)));
  const auto failure =
      failure_of([&] { static_cast<void>(site.read(known_file("circle", content), {5, 500})); });
  CHECK(failure->code == Errc::kInvalid);
  CHECK_FALSE(failure->transient);
}

TEST_CASE("with a known digest, nodes may differ, a replacement under way is noticed") {
  const std::string content = pattern(1000);
  struct Version {
    std::string etag;
    std::string modified;
    std::string date;
  } version;
  Site site("/m/");
  site.origin.set_fault([&](const SeenRequest&, Connection& connection) {
    connection.send(answer(206,
                           {{"Content-Range", "bytes 0-999/1000"},
                            {"ETag", version.etag},
                            {"Last-Modified", version.modified},
                            {"Date", version.date}},
                           content));
    return true;
  });
  const File file = known_file("f", content);
  const auto failure = [&](const Version& now) {
    version = now;
    return failure_of([&] { static_cast<void>(site.read(file, {0, 1000})); });
  };
  const std::string monday = "Mon, 07 Nov 1994 08:49:37 GMT";
  const std::string noon = "Mon, 07 Nov 1994 12:00:00 GMT";
  const std::string evening = "Mon, 07 Nov 1994 20:00:00 GMT";
  CHECK_FALSE(failure({"\"node1\"", kDate, noon}));
  CHECK_FALSE(failure({"\"node2\"", kDate, noon}));
  CHECK_FALSE(failure({"\"node3\"", monday, noon}));
  // Each part that is still under way hears of it.
  CHECK(failure({"\"new\"", evening, evening})->code == Errc::kChanged);
  CHECK(failure({"\"new\"", evening, evening})->code == Errc::kChanged);
  // The fill that this ended is over; the next takes the version that it finds.
  site.source.begin_afresh(file);
  CHECK_FALSE(failure({"\"new\"", evening, evening}));
  CHECK_FALSE(failure({"\"new\"", evening, evening}));
}

TEST_CASE("a sink can end the way to its range") {
  const std::string content = pattern(3 << 20);
  Site site("/m/");
  site.origin.set_fault([&](const SeenRequest&, Connection& connection) {
    connection.send(answer(200, {}, content));
    return true;
  });
  CollectingSink sink(3'000'000);
  sink.after_skip = [] { throw std::logic_error("nobody wants it"); };
  CHECK_THROWS_AS(site.source.read(known_file("f", content), {3'000'000, 3'000'100}, sink, {}),
                  std::logic_error);
}

TEST_CASE("what the sink throws comes out as it is") {
  Site site("/m/", {{"/m/f", {pattern(1000), "", ""}}});
  const File file = known_file("f", pattern(1000));
  CollectingSink sink(0);
  sink.after_write = [] { throw Error(Errc::kCancelled, "mine"); };
  CHECK(failure_of([&] { site.source.read(file, {0, 1000}, sink, {}); })->message == "mine");
  sink.after_write = [] { throw std::out_of_range("mine"); };
  CHECK_THROWS_AS(site.source.read(file, {0, 1000}, sink, {}), std::out_of_range);
}

TEST_CASE("a stop ends a read that waits") {
  std::stop_source stop;
  Site site("/m/");
  site.origin.set_fault([&](const SeenRequest&, Connection& connection) {
    stop.request_stop();
    connection.stall();
    return true;
  });
  CollectingSink sink(0);
  const auto start = std::chrono::steady_clock::now();
  const auto failure = failure_of(
      [&] { site.source.read(known_file("f", "0123"), {0, 4}, sink, stop.get_token()); });
  CHECK(failure->code == Errc::kCancelled);
  CHECK(std::chrono::steady_clock::now() - start < 10s);
}

TEST_CASE("many ranges at once are each right") {
  const std::string content = pattern(1 << 20);
  Site site("/m/", {{"/m/f", {content, "", ""}}});
  const File file = known_file("f", content);
  std::vector<std::future<std::string>> parts;
  for (std::uint64_t i = 0; i < 16; ++i) {
    parts.push_back(std::async(std::launch::async,
                               [&, i] { return site.read(file, {i << 16, (i + 1) << 16}); }));
  }
  std::string all;
  for (auto& part : parts) all += part.get();
  CHECK((all == content));
  CHECK(site.origin.server().connections() <= 16);
}
