// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/hf_source.hpp"

#include "digest/git_blob.hpp"
#include "source/collecting_sink.hpp"
#include "source/failure.hpp"
#include "source/hf/scripted_hub.hpp"
#include "source/source_pool.hpp"

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

using weightfs::ByteRange;
using weightfs::Digest;
using weightfs::Errc;
using weightfs::net::HttpClient;
using weightfs::snapshot::HubVersion;
using weightfs::snapshot::Snapshot;
using weightfs::source::HubAccess;
using weightfs::source::SourcePool;
using weightfs::test::answer;
using weightfs::test::CollectingSink;
using weightfs::test::failure_of;
using weightfs::test::git_id;
using weightfs::test::ScriptedHub;
using weightfs::test::SeenRequest;

namespace {

using namespace std::chrono_literals;
using Connection = weightfs::test::ScriptedServer::Connection;

std::string pattern(std::size_t size) {
  std::string bytes(size, ' ');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('a' + i * 7 % 26);
  return bytes;
}

const ScriptedHub::Files kFiles{{"config.json", {"{}\n", false}},
                                {"empty", {"", false}},
                                {"model-00001.safetensors", {pattern(100'000), true}},
                                {"sub/a #1?.txt", {"hello", false}}};

/// A Hub and who asks it.
struct Fixture {
  explicit Fixture(HubAccess access) : http({}), pool(http, std::move(access)) {}
  Fixture() : Fixture(HubAccess{}) {}

  HttpClient http;
  SourcePool pool;
};

Snapshot resolve(SourcePool& pool, const std::string& reference = "hf://org/name") {
  return pool.get(reference)->resolve({});
}

std::string read(SourcePool& pool, const Snapshot& snapshot, const std::string& path,
                 std::optional<ByteRange> range = {}) {
  const auto& file = *snapshot.find(path);
  const ByteRange wanted = range.value_or(ByteRange{0, file.size});
  CollectingSink sink(wanted.begin);
  pool.get(snapshot.source())->read(file, wanted, sink, {});
  CHECK(!sink.gap);
  return sink.bytes;
}

std::size_t with_token(const std::vector<SeenRequest>& requests) {
  return static_cast<std::size_t>(std::ranges::count_if(requests, [](const SeenRequest& request) {
    return request.header("authorization").has_value();
  }));
}

}  // namespace

TEST_CASE("a repository has its commit, and every file its sha256, at once") {
  ScriptedHub hub(kFiles);
  hub.set_page_size(2);
  Fixture node(hub.access());
  const Snapshot found = resolve(node.pool);
  CHECK(found.revision() == git_id('a'));
  CHECK(!found.provisional());
  REQUIRE(found.files().size() == kFiles.size());
  for (const auto& [path, file] : kFiles) {
    INFO(path);
    REQUIRE(found.find(path) != nullptr);
    CHECK(found.find(path)->size == file.content.size());
    CHECK(found.find(path)->sha256 == Digest::of(file.content));
    CHECK(HubVersion::parse(found.find(path)->validator).commit == git_id('a'));
  }
  CHECK(hub.count("/tree/") == 2);
  CHECK(hub.storage().requests().empty());
}

TEST_CASE("files are read as they are, and small ones not twice") {
  ScriptedHub hub(kFiles);
  Fixture node(hub.access());
  const Snapshot found = resolve(node.pool);
  const std::size_t asked = hub.hub().requests().size();
  for (const char* path : {"config.json", "sub/a #1?.txt"}) {
    CHECK(read(node.pool, found, path) == kFiles.at(path).content);
  }
  CHECK(hub.hub().requests().size() == asked);

  // Another daemon has the snapshot, and not what was fetched for it.
  Fixture other(hub.access());
  CHECK(read(other.pool, found, "sub/a #1?.txt", ByteRange{1, 4}) == "ell");
}

TEST_CASE("a large file has one signed URL for all its ranges, and the token stays with the Hub") {
  ScriptedHub hub(kFiles);
  Fixture node(hub.access());
  const Snapshot found = resolve(node.pool);
  const std::string path = "model-00001.safetensors";
  const std::string& content = kFiles.at(path).content;
  std::vector<std::string> parts(10);
  {
    std::vector<std::jthread> readers;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      readers.emplace_back([&, i] {
        parts[i] = read(node.pool, found, path, ByteRange{i * 10'000, (i + 1) * 10'000});
      });
    }
  }
  std::string whole;
  for (const std::string& part : parts) whole += part;
  CHECK(whole == content);
  CHECK(hub.count("/resolve/" + git_id('a') + "/model") == 1);
  CHECK(hub.storage().requests().size() == parts.size());
  CHECK(with_token(hub.storage().requests()) == 0);
  CHECK(with_token(hub.hub().requests()) == hub.hub().requests().size());
}

TEST_CASE("a signed URL that died is asked for again, and one that never lives is an error") {
  ScriptedHub hub(kFiles);
  Fixture node(hub.access());
  const Snapshot found = resolve(node.pool);
  std::atomic<int> refusals{1};
  hub.set_storage_fault([&](const SeenRequest&, Connection& connection) {
    if (refusals-- <= 0) return false;
    connection.send(answer(403, {}, "Request has expired"));
    return true;
  });
  const std::string path = "model-00001.safetensors";
  CHECK(read(node.pool, found, path, ByteRange{5, 50}) == kFiles.at(path).content.substr(5, 45));
  CHECK(hub.count("/resolve/" + git_id('a') + "/model") == 2);
  refusals = 100;
  const auto failure = failure_of([&] { static_cast<void>(read(node.pool, found, path)); });
  REQUIRE(failure);
  CHECK(failure->code == Errc::kPermission);
  CHECK(failure->message.find("Signature") == std::string::npos);
}

TEST_CASE("what a branch showed before can still be read, by another daemon too") {
  ScriptedHub hub(kFiles);
  Fixture node(hub.access());
  const Snapshot before = resolve(node.pool);
  auto files = kFiles;
  files["model-00001.safetensors"].content = pattern(90'000) + "!";
  files["config.json"].content = "{\"new\":1}";
  hub.commit(git_id('b'), files);
  const Snapshot after = resolve(node.pool);
  CHECK(after.revision() == git_id('b'));
  CHECK(after.id() != before.id());
  // What did not change is known by its git id.
  CHECK(hub.count("/resolve/" + git_id('b') + "/sub/") == 0);
  CHECK(hub.count("/resolve/" + git_id('b') + "/config.json") == 1);
  Fixture other(hub.access());
  for (const char* path : {"config.json", "model-00001.safetensors"}) {
    CHECK(read(other.pool, before, path) == kFiles.at(path).content);
    CHECK(read(other.pool, after, path) == files.at(path).content);
  }
}

TEST_CASE("many who ask for the same ask once") {
  ScriptedHub hub(kFiles);
  std::atomic<bool> go{false};
  hub.set_fault([&](const SeenRequest& request, Connection&) {
    while (request.target.find("/revision/") != std::string::npos && !go) std::this_thread::yield();
    return false;
  });
  Fixture node(hub.access());
  std::vector<std::jthread> all;
  std::atomic<int> asking{0};
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&, i] {
      ++asking;
      const Snapshot found = resolve(node.pool, i % 2 ? "hf://org/name" : "hf://org/name@main");
      if (found.revision() == git_id('a')) ++right;
    });
  }
  while (asking < 8) std::this_thread::yield();
  go = true;
  all.clear();
  CHECK(right == 8);
  CHECK(hub.count("/tree/") <= 8);
  // A commit is immutable: it is not asked for again.
  const std::size_t before = hub.hub().requests().size();
  CHECK(resolve(node.pool, "hf://org/name@" + git_id('a')).revision() == git_id('a'));
  CHECK(hub.hub().requests().size() == before);
}

TEST_CASE("each refusal says what it is") {
  struct Case {
    int status;
    std::map<std::string, std::string> headers;
    Errc code;
    const char* says;
  };
  const std::vector<Case> cases{
      {403, {{"X-Error-Code", "GatedRepo"}}, Errc::kPermission, "is gated"},
      {401, {{"X-Error-Code", "GatedRepo"}}, Errc::kPermission, "is gated"},
      {401,
       {{"X-Error-Message", "Invalid credentials in Authorization header"}},
       Errc::kPermission,
       "refuses the token of HF_TOKEN"},
      {401, {{"X-Error-Code", "RepoNotFound"}}, Errc::kPermission, "refuses the token of HF_TOKEN"},
      {404,
       {{"X-Error-Code", "RepoNotFound"}},
       Errc::kNotFound,
       "the token of HF_TOKEN gives no access"},
      {404, {{"X-Error-Code", "RevisionNotFound"}}, Errc::kNotFound, "has no revision main"},
      {403,
       {{"X-Error-Message", "Access to this resource is disabled."}},
       Errc::kPermission,
       "is disabled"},
      {418, {}, Errc::kInvalid, "answered 418"},
  };
  for (const Case& wanted : cases) {
    INFO(wanted.says);
    ScriptedHub hub(kFiles);
    hub.set_fault([&](const SeenRequest&, Connection& connection) {
      connection.send(answer(wanted.status, wanted.headers, ""));
      return true;
    });
    Fixture node(hub.access());
    const auto failure = failure_of([&] { static_cast<void>(resolve(node.pool)); });
    REQUIRE(failure);
    CHECK(failure->code == wanted.code);
    CHECK(failure->message.find(wanted.says) != std::string::npos);
    CHECK(failure->message.find("hf_secret") == std::string::npos);
    CHECK(hub.hub().requests().size() == 1);
  }
}

TEST_CASE("a Hub that counts requests is obeyed") {
  ScriptedHub hub(kFiles);
  std::atomic<int> refusals{2};
  hub.set_fault([&](const SeenRequest& request, Connection& connection) {
    if (request.target.find("/revision/") == std::string::npos || refusals-- <= 0) return false;
    connection.send(answer(429, {{"RateLimit", "\"api\";r=0;t=1"}}, ""));
    return true;
  });
  Fixture node(hub.access());
  const auto begin = std::chrono::steady_clock::now();
  CHECK(resolve(node.pool).revision() == git_id('a'));
  CHECK(std::chrono::steady_clock::now() - begin >= 2s);
  CHECK(hub.count("/revision/") == 3);

  // One who has no time for that is told so.
  HubAccess hasty = hub.access();
  hasty.patience = 500ms;
  refusals = 1000;
  Fixture other(hasty);
  const auto failure = failure_of([&] { static_cast<void>(resolve(other.pool)); });
  REQUIRE(failure);
  CHECK(failure->transient);
  CHECK(failure->retry_after > 500ms);
}

TEST_CASE("a Hub that lies about a file is caught") {
  ScriptedHub hub(kFiles);
  Fixture node(hub.access());
  const Snapshot found = resolve(node.pool);
  const std::string path = "model-00001.safetensors";
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"X-Linked-Size", "99999"},
           {"X-Linked-Etag", '"' + std::string(64, '1') + '"'},
           {"X-Repo-Commit", git_id('9')}}) {
    INFO(name);
    hub.set_fault([&](const SeenRequest&, Connection& connection) {
      connection.send(answer(302, {{"Location", hub.storage_url("/x")}, {name, value}}, ""));
      return true;
    });
    const auto failure = failure_of([&] { static_cast<void>(read(node.pool, found, path)); });
    REQUIRE(failure);
    CHECK(failure->code == Errc::kChanged);
  }
  CHECK(hub.storage().requests().empty());

  // Small files must have git's own id.
  hub.set_fault([&](const SeenRequest& request, Connection& connection) {
    if (request.target.find("/resolve") == std::string::npos) return false;
    connection.send(answer(200, {}, request.target.ends_with("config.json") ? "{ }" : "hello"));
    return true;
  });
  Fixture other(hub.access());
  const auto failure = failure_of([&] { static_cast<void>(resolve(other.pool)); });
  REQUIRE(failure);
  CHECK((failure->code == Errc::kCorrupt || failure->code == Errc::kInvalid));
}

TEST_CASE("an endpoint that a source names gets no token") {
  ScriptedHub hub(kFiles);
  HubAccess elsewhere{.endpoint = "http://127.0.0.1:9", .token = "hf_secret", .token_file = {}};
  Fixture node(elsewhere);
  const std::string reference = "hf://org/name?endpoint=" + hub.access().endpoint;
  const Snapshot found = resolve(node.pool, reference);
  CHECK(found.revision() == git_id('a'));
  CHECK(with_token(hub.hub().requests()) == 0);
}

TEST_CASE("a token that cannot stand in a header is not sent") {
  ScriptedHub hub(kFiles);
  HubAccess access = hub.access();
  access.token = "hf_a\nX-Evil: 1";
  Fixture node(access);
  const auto failure = failure_of([&] { static_cast<void>(resolve(node.pool)); });
  REQUIRE(failure);
  CHECK(failure->code == Errc::kInvalid);
  CHECK(failure->message.find("Evil") == std::string::npos);
  CHECK(hub.hub().requests().empty());
}

TEST_CASE("trees that do not end, or have a path twice or one that leads out, are refused") {
  const std::string blob = weightfs::git_blob_id("");
  const auto entry = [&](const std::string& path) {
    return R"({"type":"file","path":")" + path + R"(","size":0,"oid":")" + blob + R"("})";
  };
  for (const std::string& page :
       {"[" + entry("a") + "," + entry("a") + "]", "[" + entry("../a") + "]",
        "[" + entry("/a") + "]", std::string("{}"), std::string("[1]"), std::string("nonsense")}) {
    INFO(page);
    ScriptedHub hub(kFiles);
    hub.set_fault([&](const SeenRequest& request, Connection& connection) {
      if (request.target.find("/tree/") == std::string::npos) return false;
      connection.send(answer(200, {}, page));
      return true;
    });
    Fixture node(hub.access());
    CHECK(failure_of([&] { static_cast<void>(resolve(node.pool)); })->code == Errc::kInvalid);
  }
  ScriptedHub hub(kFiles);
  hub.set_fault([&](const SeenRequest& request, Connection& connection) {
    if (request.target.find("/tree/") == std::string::npos) return false;
    connection.send(
        answer(200, {{"Link", "<" + request.target + ">; rel=\"next\""}}, "[" + entry("a") + "]"));
    return true;
  });
  Fixture node(hub.access());
  CHECK(failure_of([&] { static_cast<void>(resolve(node.pool)); })->code == Errc::kInvalid);
}

TEST_CASE("a Hub cannot send us where nobody may") {
  ScriptedHub hub(kFiles);
  Fixture node(hub.access());
  const Snapshot found = resolve(node.pool);
  for (const char* location : {"http://169.254.169.254/latest/meta-data", "http://user:word@h/x",
                               "file:///etc/passwd", "gopher://h/", ""}) {
    INFO(location);
    hub.set_fault([&](const SeenRequest&, Connection& connection) {
      connection.send(answer(302, {{"Location", location}}, ""));
      return true;
    });
    const auto failure =
        failure_of([&] { static_cast<void>(read(node.pool, found, "model-00001.safetensors")); });
    REQUIRE(failure);
    CHECK(failure->code == Errc::kInvalid);
  }
}

TEST_CASE("a Hub that lists one sha256 with two sizes is not believed") {
  ScriptedHub hub(kFiles);
  Fixture node(hub.access());
  const Snapshot found = resolve(node.pool);
  weightfs::snapshot::File file = *found.find("config.json");
  file.size = 1000;
  CollectingSink sink(0);
  const auto failure =
      failure_of([&] { node.pool.get("hf://org/name")->read(file, {0, 1000}, sink, {}); });
  REQUIRE(failure);
  CHECK(failure->code == Errc::kChanged);
  CHECK(sink.bytes.empty());
}
