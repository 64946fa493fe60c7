// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/json_codec.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <utility>

using namespace weightfs;
using namespace weightfs::control;
using Catch::Matchers::ContainsSubstring;

namespace {

template <class Value>
void check_round_trip(const Value& value) {
  CHECK(decode<Value>(encode(value)) == value);
}

}  // namespace

TEST_CASE("values come back from JSON as they went in") {
  api::Status status;
  status.version = "0.1.0";
  status.pid = 42;
  status.passthrough = {false, "the kernel is older than 6.9"};
  status.store.bytes = ~0ULL;
  status.fills = {{.name = "org/m",
                   .path = "a.safetensors",
                   .size = 10,
                   .streaming = true,
                   .error = api::Fault{"timed_out", "nothing came"}},
                  {}};
  check_round_trip(status);
  check_round_trip(api::Status{});
  check_round_trip(api::Model{.name = "org/m", .complete = true, .added = -1});
  check_round_trip(api::ModelDetail{{.name = "x"}, {{.path = "f", .size = 3, .sha256 = "ab"}}});
  check_round_trip(api::Progress{.name = "x", .error = api::Fault{"corrupt", "bad"}});
  check_round_trip(api::VerifyResult{2, 3, {{"00", {"m/a", "n/b"}}}});
  check_round_trip(api::Why{.path = "/models/x", .fill = api::FillStatus{.name = "x"}});
  check_round_trip(api::UpdateResult{"x", true, "a", "b"});
  check_round_trip(api::Freed{"x", true, 1, 2, 3, 4});
  check_round_trip(api::JobProgress{"fetching", 1, 2});
}

TEST_CASE("status has the members that scripts rely on") {
  const Json json = to_json(api::Status{});
  for (const char* key : {"pid", "keeper_pid", "mode", "mount", "passthrough", "store", "cache",
                          "source", "fuse", "fills"}) {
    CAPTURE(key);
    CHECK(json.contains(key));
  }
  CHECK(json["passthrough"].contains("active"));
  CHECK(json["passthrough"].contains("reason"));
  CHECK(json["store"].contains("capacity"));
  CHECK(json["cache"].contains("miss_bytes"));
  CHECK(json["source"].contains("requests"));
  CHECK(json["fuse"].contains("opens"));
  CHECK(json["fills"].is_array());
}

TEST_CASE("bytes that are not UTF-8 travel in base64 and are not lost") {
  const api::ModelFile file{.path = "weights-\xff\xfe.bin", .size = 1};
  CHECK_THAT(encode(file), ContainsSubstring(R"("path_base64":"d2VpZ2h0cy3//i5iaW4=")"));
  check_round_trip(file);
  CHECK_THROWS_AS(decode<api::ModelFile>(R"({"path_base64": "###"})"), Error);
  CHECK_THROWS_AS(decode<api::ModelFile>(R"({"path_base64": 1})"), Error);
}

TEST_CASE("unknown members are passed over, missing ones keep their defaults") {
  const auto progress = decode<api::Progress>(R"({"name":"x","from_the_future":[1]})");
  CHECK(progress.name == "x");
  CHECK(progress.bytes == 0);
}

TEST_CASE("a wrong type is refused by name") {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"bytes": -1})", "bytes must be a whole number"},
      {R"({"bytes": 1.5})", "bytes must be a whole number"},
      {R"({"bytes": "1"})", "bytes must be a whole number"},
      {R"({"name": 1})", "name must be text"},
      {R"({"complete": "yes"})", "complete must be true or false"},
      {R"({"error": []})", "error must be an object"},
      {"[]", "the body must be an object"},
      {"{", "not JSON"},
      {"", "not JSON"},
      {"{\"name\": \"\xff\"}", "not JSON"},
  };
  for (const auto& [text, message] : rows) {
    CAPTURE(text);
    try {
      (void)decode<api::Progress>(text);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kInvalid);
      CHECK_THAT(error.what(), ContainsSubstring(message));
    }
  }
}

TEST_CASE("a message with broken bytes still makes JSON") {
  Json json;
  json["message"] = "file \xff";
  CHECK(parse_json(dump_json(json)).is_object());
}
