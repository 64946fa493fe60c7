// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/scratch_file.hpp"
#include "source/failure.hpp"
#include "source/http/site.hpp"

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using weightfs::Digest;
using weightfs::Errc;
using weightfs::snapshot::File;
using weightfs::test::answer;
using weightfs::test::failure_of;
using weightfs::test::kDate;
using weightfs::test::kDateSeconds;
using weightfs::test::known_file;
using weightfs::test::pattern;
using weightfs::test::RangedOrigin;
using weightfs::test::SeenRequest;
using weightfs::test::Site;
using Connection = weightfs::test::ScriptedServer::Connection;

namespace {

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
  SECTION("checksums that may have been cut at the end of a line") {
    Site site("/m/", {{"/m/a", {"x", "", ""}}, {"/m/b", {"y", "", ""}}});
    site.origin.set_fault([&](const SeenRequest& request, Connection& connection) {
      if (request.target != "/m/SHA256SUMS") return false;
      connection.send("HTTP/1.1 200 OK\r\n\r\n" + sums.substr(0, sums.find('\n') + 1));
      connection.close();
      return true;
    });
    const auto failure = failure_of([&] { static_cast<void>(site.source.resolve({})); });
    REQUIRE(failure);
    CHECK(failure->code == Errc::kUnavailable);
    CHECK(failure->transient);
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
