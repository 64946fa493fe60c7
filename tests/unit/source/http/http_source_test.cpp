// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/http_source.hpp"

#include "digest/sha256.hpp"
#include "io/scratch_file.hpp"
#include "net/ranged_origin.hpp"
#include "source/collecting_sink.hpp"
#include "source/failure.hpp"
#include "source/source_factory.hpp"
#include "source/source_pool.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using weightfs::ByteRange;
using weightfs::Digest;
using weightfs::Errc;
using weightfs::Error;
using namespace weightfs::source;
using weightfs::net::HttpClient;
using weightfs::snapshot::File;
using weightfs::snapshot::Reference;
using weightfs::test::answer;
using weightfs::test::CollectingSink;
using weightfs::test::failure_of;
using weightfs::test::pattern;
using weightfs::test::RangedOrigin;
using weightfs::test::SeenRequest;
using Connection = weightfs::test::ScriptedServer::Connection;

namespace {

const std::string kDate = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr std::int64_t kDateSeconds = 784'111'777;

/// An origin, a client and the source of one reference.
struct Site {
  explicit Site(const std::string& path, RangedOrigin::Objects objects = {})
      : origin(std::move(objects)),
        http({.connect_timeout = 2s, .stall_timeout = 200ms}),
        source(Reference::parse(origin.url(path)), http) {}

  [[nodiscard]] std::string read(const File& file, ByteRange range) {
    CollectingSink sink(range.begin);
    source.read(file, range, sink, {});
    CHECK_FALSE(sink.gap);
    return sink.bytes;
  }

  RangedOrigin origin;
  HttpClient http;
  HttpSource source;
};

File known_file(const std::string& path, const std::string& content) {
  return {.path = path, .size = content.size(), .sha256 = Digest::of(content)};
}

std::string manifest(const std::vector<File>& files) {
  std::string text;
  for (const File& file : files) {
    text += (text.empty() ? "" : ",") + ("{\"path\":\"" + file.path + "\",\"size\":") +
            std::to_string(file.size) + ",\"sha256\":\"" + file.sha256->hex() + "\"}";
  }
  return "{\"files\":[" + text + "]}";
}

}  // namespace

TEST_CASE("a directory is what its weightfs.json says, with one request") {
  const File a = known_file("a.bin", "aaaa");
  const File b = known_file("sub/b.bin", "bb");
  Site site("/m/", {{"/m/weightfs.json", {manifest({b, a}), "", ""}}});
  const auto snapshot = site.source.resolve({});
  REQUIRE(snapshot.files().size() == 2);
  CHECK(snapshot.files()[0] == a);
  CHECK(snapshot.files()[1] == b);
  CHECK_FALSE(snapshot.provisional());
  CHECK(snapshot.source() == site.origin.url("/m/"));
  CHECK(site.origin.server().requests().size() == 1);
  CHECK_FALSE(site.source.open_local(a));
  CHECK(site.source.describe() == "127.0.0.1:" + std::to_string(site.origin.server().port()));
}

TEST_CASE("a directory without weightfs.json is what SHA256SUMS says, sizes asked for") {
  std::string sums;
  RangedOrigin::Objects objects;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "part " + std::to_string(i);
    const std::string content(static_cast<std::size_t>(i), 'x');
    sums += Digest::of(content).hex() + "  " + name + "\n";
    objects["/m/part%20" + std::to_string(i)] = {content, "", kDate};
  }
  objects["/m/SHA256SUMS"] = {sums, "", ""};
  Site site("/m/", objects);
  const auto snapshot = site.source.resolve({});
  REQUIRE(snapshot.files().size() == 30);
  for (const File& file : snapshot.files()) {
    CHECK(file.size == std::stoul(file.path.substr(5)));
    CHECK(file.sha256 == Digest::of(std::string(file.size, 'x')));
    CHECK(file.mtime == kDateSeconds);
    CHECK(file.validator.empty());
  }
  CHECK(site.origin.count("HEAD") == 30);
}

TEST_CASE("a listing that cannot be had says why") {
  const std::string sums = Digest::of("x").hex() + "  a\n" + Digest::of("y").hex() + "  b\n";
  SECTION("neither document") {
    Site site("/m/");
    const auto failure = failure_of([&] { static_cast<void>(site.source.resolve({})); });
    CHECK(failure->code == Errc::kNotFound);
    CHECK(failure->message.find("weightfs.json") != std::string::npos);
    CHECK(failure->message.find("SHA256SUMS") != std::string::npos);
  }
  SECTION("a storage service that says 403 for what it does not have") {
    Site site("/m/", {{"/m/SHA256SUMS", {"", "", ""}}});
    site.origin.set_fault([](const SeenRequest& request, Connection& connection) {
      if (request.target == "/m/SHA256SUMS") return false;
      connection.send(answer(403, {}, ""));
      return true;
    });
    CHECK(site.source.resolve({}).files().empty());
    site.origin.put("/m/SHA256SUMS", {"not a checksum", "", ""});
    CHECK(failure_of([&] { static_cast<void>(site.source.resolve({})); })->code == Errc::kInvalid);
  }
  SECTION("nothing may be read") {
    Site site("/m/");
    site.origin.set_fault([](const SeenRequest&, Connection& connection) {
      connection.send(answer(403, {}, ""));
      return true;
    });
    CHECK(failure_of([&] { static_cast<void>(site.source.resolve({})); })->code ==
          Errc::kPermission);
  }
  SECTION("a listed file is missing") {
    Site site("/m/", {{"/m/SHA256SUMS", {sums, "", ""}}, {"/m/a", {"x", "", ""}}});
    const auto failure = failure_of([&] { static_cast<void>(site.source.resolve({})); });
    CHECK(failure->code == Errc::kNotFound);
    CHECK(failure->message.find("\"b\"") != std::string::npos);
  }
  SECTION("the server is busy") {
    Site site("/m/");
    site.origin.set_fault([](const SeenRequest&, Connection& connection) {
      connection.send(answer(503, {{"Retry-After", "3"}}, ""));
      return true;
    });
    const auto failure = failure_of([&] { static_cast<void>(site.source.resolve({})); });
    CHECK(failure->code == Errc::kUnavailable);
    CHECK(failure->transient);
    CHECK(failure->retry_after == 3s);
  }
}

TEST_CASE("bad manifests are refused") {
  const std::string digest = Digest::of("x").hex();
  const auto entry = [&](const std::string& path, const std::string& size) {
    return "{\"path\":\"" + path + "\",\"size\":" + size + ",\"sha256\":\"" + digest + "\"}";
  };
  const auto document = [](const std::string& entries) { return "{\"files\":[" + entries + "]}"; };
  for (const std::string& text :
       {document(entry("../a", "1")), document(entry("/a", "1")), document(entry("", "1")),
        document(entry("a\\u0000b", "1")), document(entry("a", "-1")), document(entry("a", "1e30")),
        document(entry("a", "1") + "," + entry("a", "1")),
        document(entry("a", "1") + "," + entry("a/b", "1")), std::string("{\"files\":["),
        std::string("<html>not here</html>"), std::string("")}) {
    INFO(text);
    Site site("/m/", {{"/m/weightfs.json", {text, "", ""}}});
    CHECK(failure_of([&] { static_cast<void>(site.source.resolve({})); })->code == Errc::kInvalid);
  }
}

TEST_CASE("a manifest that is too large, compressed or cut short is refused") {
  Site site("/m/");
  const auto resolve_against = [&](const std::string& bytes) {
    site.origin.set_fault([bytes](const SeenRequest&, Connection& connection) {
      connection.send(bytes);
      connection.close();
      return true;
    });
    return failure_of([&] { static_cast<void>(site.source.resolve({})); });
  };
  CHECK(resolve_against(answer(200, {{"Content-Length", "200000000"}}, "{"))->code ==
        Errc::kInvalid);
  const auto compressed = resolve_against(answer(200, {{"Content-Encoding", "gzip"}}, "\x1f\x8b"));
  CHECK(compressed->code == Errc::kUnsupported);
  CHECK(compressed->message.find("gzip") != std::string::npos);
  CHECK(resolve_against(answer(200, {{"Content-Length", "100"}}, "{\"files\":[]}"))->transient);
}

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

TEST_CASE("a server that does not do HEAD is asked for the first byte") {
  struct Row {
    std::string name;
    std::string head_answer;
    std::optional<std::string> get_answer;
    std::uint64_t size;
  };
  const std::vector<Row> rows = {
      {"405", answer(405, {}, ""), {}, 1000},
      {"403, as for a signed URL", answer(403, {}, ""), {}, 1000},
      {"501", answer(501, {}, ""), {}, 1000},
      {"no length", "HTTP/1.1 200 OK\r\n\r\n", {}, 1000},
      {"compressed",
       answer(200, {{"Content-Encoding", "gzip"}, {"Content-Length", "7"}}, ""),
       {},
       1000},
      {"a length of nothing", answer(200, {}, ""), {}, 1000},
      {"ranges ignored, too", answer(405, {}, ""), answer(200, {}, std::string(77, 'x')), 77},
      {"an empty file", answer(200, {}, ""), answer(416, {{"Content-Range", "bytes */0"}}, ""), 0},
      {"an empty file, no more said", answer(200, {}, ""), answer(416, {}, ""), 0},
      {"an empty file without ranges", answer(200, {}, ""), answer(200, {}, ""), 0},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Site site("/f", {{"/f", {pattern(1000), "\"v1\"", ""}}});
    site.origin.set_fault([&](const SeenRequest& request, Connection& connection) {
      if (request.method == "HEAD") {
        connection.send(row.head_answer);
        return true;
      }
      if (row.get_answer) connection.send(*row.get_answer);
      return row.get_answer.has_value();
    });
    CHECK(site.source.resolve({}).files().at(0).size == row.size);
  }
}

TEST_CASE("a single file that cannot be described says why") {
  struct Row {
    std::string name;
    std::string head_answer;
    std::string get_answer;
    Errc code;
  };
  const std::vector<Row> rows = {
      {"not there", answer(404, {}, ""), "", Errc::kNotFound},
      {"gone", answer(410, {}, ""), "", Errc::kNotFound},
      {"unauthorized", answer(401, {}, ""), "", Errc::kPermission},
      {"forbidden both ways", answer(403, {}, ""), answer(403, {}, ""), Errc::kPermission},
      {"busy", answer(503, {}, ""), "", Errc::kUnavailable},
      {"no length anywhere", answer(405, {}, ""),
       answer(200, {{"Transfer-Encoding", "chunked"}}, "1\r\nx\r\n0\r\n\r\n"), Errc::kUnsupported},
      {"a total of *", answer(405, {}, ""), answer(206, {{"Content-Range", "bytes 0-0/*"}}, "x"),
       Errc::kUnsupported},
      {"compressed", answer(405, {}, ""), answer(200, {{"Content-Encoding", "gzip"}}, "x"),
       Errc::kUnsupported},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Site site("/f");
    site.origin.set_fault([&](const SeenRequest& request, Connection& connection) {
      connection.send(request.method == "HEAD" ? row.head_answer : row.get_answer);
      return true;
    });
    const auto failure = failure_of([&] { static_cast<void>(site.source.resolve({})); });
    REQUIRE(failure);
    CHECK(failure->code == row.code);
  }
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
  CHECK_FALSE(site.source.ignores_ranges());
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
  CHECK_FALSE(site.source.ignores_ranges());
  CHECK((site.read(file, {100'000, 200'000}) == content.substr(100'000, 100'000)));
  CHECK(site.source.ignores_ranges());
  CHECK((site.read(file, {3'000'000, content.size()}) == content.substr(3'000'000)));
  CHECK(site.http.counters().bytes < 2 * content.size() + (2 << 20));
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
  Site site("/m/", {{"/m/f", {content, "", ""}}});
  const File file = known_file("f", content);
  const std::string half =
      answer(206, {{"Content-Range", "bytes 0-999/1000"}, {"Content-Length", "1000"}},
             content.substr(0, 500));
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
  const auto failure = failure_of([&] {
    static_cast<void>(site.read(known_file("circle", content), {5, 500}));
  });
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
  CHECK(failure({"\"new\"", evening, evening})->code == Errc::kChanged);
  // The fill that this ended is over; the next takes the version that it finds.
  CHECK_FALSE(failure({"\"new\"", evening, evening}));
  CHECK_FALSE(failure({"\"new\"", evening, evening}));
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

TEST_CASE("a stop ends a read at once") {
  Site site("/m/");
  std::stop_source stop;
  std::atomic<std::chrono::steady_clock::time_point> stopped_at;
  site.origin.set_fault([&](const SeenRequest&, Connection& connection) {
    stopped_at = std::chrono::steady_clock::now();
    stop.request_stop();
    connection.stall();
    return true;
  });
  CollectingSink sink(0);
  const auto failure = failure_of([&] {
    site.source.read(known_file("f", "0123"), {0, 4}, sink, stop.get_token());
  });
  CHECK(failure->code == Errc::kCancelled);
  CHECK(std::chrono::steady_clock::now() - stopped_at.load() < 100ms);
}

TEST_CASE("many ranges at once are each right") {
  const std::string content = pattern(1 << 20);
  Site site("/m/", {{"/m/f", {content, "", ""}}});
  const File file = known_file("f", content);
  std::vector<std::string> parts(16);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      threads.emplace_back([&, i] {
        CollectingSink sink(i << 16);
        site.source.read(file, {i << 16, (i + 1) << 16}, sink, {});
        parts[i] = sink.bytes;
      });
    }
  }
  std::string all;
  for (const std::string& part : parts) all += part;
  CHECK((all == content));
  CHECK(site.origin.server().connections() <= 16);
}

TEST_CASE("references that no HTTP source can have are refused") {
  HttpClient http({});
  for (const char* text : {"http://h/dir/?token=x", "http://h/..", "http://h/a%2Fb",
                           "http://h/a%00b", "http://h/%zz"}) {
    INFO(text);
    CHECK(failure_of([&] { static_cast<void>(make_source(Reference::parse(text), http)); })->code ==
          Errc::kInvalid);
  }
  CHECK(failure_of([&] {
          static_cast<void>(make_source(Reference::parse("s3://bucket/x"), http));
        })->code == Errc::kUnsupported);
}

TEST_CASE("a pool has one source for each reference, however it is written") {
  HttpClient http({});
  SourcePool pool(http);
  const auto first = pool.get("http://Host/dir/");
  CHECK(pool.get("http://host/dir/") == first);
  CHECK(pool.get("http://host/dir2/") != first);
  CHECK(pool.get("file:///data/x/") == pool.get("file:///data//x"));
  CHECK_THROWS_AS(pool.get("nonsense"), Error);
  CHECK_THROWS_AS(pool.get("hf://org/name"), Error);
}
