// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "digest/git_blob.hpp"
#include "source/hf/hub_token.hpp"
#include "source/hf/hub_tree.hpp"
#include "source/hf/locations.hpp"
#include "source/hf/rate_gate.hpp"
#include "source/hf/signed_url.hpp"

#include "source/failure.hpp"

#include <catch2/catch_test_macros.hpp>

#include <stdlib.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

using weightfs::Errc;
using weightfs::git_blob_id;
using weightfs::net::ResponseHead;
using namespace weightfs::source;
using namespace std::chrono_literals;

TEST_CASE("git's id of a blob") {
  CHECK(git_blob_id("Hello, World!") == "b45ef6fec89518d314f546fd6c3025367b721684");
  CHECK(git_blob_id("") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

TEST_CASE("the life of a signed URL is counted by the clock of who signed it") {
  const auto date = std::chrono::sys_days(std::chrono::year(2026) / 8 / 30) + 10h + 11min + 12s;
  CHECK(lifetime("X-Amz-Expires=3600&X-Amz-Date=20260830T101112Z", date) == 3600s);
  CHECK(lifetime("a=b&X-Amz-Date=20260830T091112Z&X-Amz-Expires=3600", date) == 0s);
  CHECK(lifetime("Expires=1788085272&Signature=x", date) == 1788085272s - date.time_since_epoch());
  CHECK(!lifetime("", date));
  CHECK(!lifetime("X-Amz-Expires=3600", date));
  CHECK(!lifetime("X-Amz-Date=20269930T101112Z&X-Amz-Expires=1", date));
  CHECK(!lifetime("Expires=99999999999999999999", date));
  CHECK(!lifetime("Expires=-1", date));
}

TEST_CASE("the next page is what Link says it is") {
  CHECK(next_link("<https://h/a?b=1,2>; rel=\"next\"") == "https://h/a?b=1,2");
  CHECK(next_link("<x>; rel=\"prev\", <y>; rel=\"next\"") == "y");
  CHECK(!next_link("<x>; rel=\"prev\""));
  CHECK(!next_link(""));
  CHECK(!next_link("<x; rel=\"next\""));
}

TEST_CASE("the wait that a server asks for") {
  const auto head = [](int status, std::multimap<std::string, std::string> headers) {
    return ResponseHead{.status = status, .effective_url = {}, .headers = std::move(headers)};
  };
  CHECK(asked_wait(head(429, {{"ratelimit", "\"api\";r=0;t=55"}})) == 55s);
  CHECK(asked_wait(head(200, {{"ratelimit", "\"api\"; r=0; t=5"}})) == 5s);
  CHECK(!asked_wait(head(200, {{"ratelimit", "\"api\";r=1;t=55"}})));
  CHECK(asked_wait(head(429, {{"ratelimit", "\"api\";r=3;t=55"}, {"retry-after", "7"}})) == 7s);
  CHECK(asked_wait(head(429, {})) == 1s);
  CHECK(asked_wait(head(429, {{"retry-after", "0"}})) == 1s);
  CHECK(asked_wait(head(429, {{"ratelimit", "\"api\";r=0;t=0"}})) == 1s);
  CHECK(asked_wait(head(200, {{"ratelimit", "\"api\";r=0;t=0"}})) == 0s);
  CHECK(asked_wait(head(429, {{"ratelimit", "\"api\";r=0;t=99999999999"}})) == 3600s);
  CHECK(!asked_wait(head(200, {{"ratelimit", ";;;r=;t"}})));
}

TEST_CASE("a token file is read again when it changes") {
  char folder[] = "/tmp/weightfs-token-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::filesystem::path file = std::filesystem::path(folder) / "token";
  HubToken token("", file);
  CHECK(!token.current());
  std::ofstream(file) << " hf_one \r\n";
  CHECK(token.current() == "hf_one");
  std::ofstream(file) << "hf_second\n";
  CHECK(token.current() == "hf_second");
  std::ofstream(file) << "hf bad\n";
  CHECK(weightfs::test::failure_of([&] { static_cast<void>(token.current()); })->code ==
        Errc::kInvalid);
  std::ofstream(file).flush();
  CHECK(!token.current());
  std::filesystem::remove_all(folder);
  CHECK(HubToken("hf_given", file).current() == "hf_given");
}

TEST_CASE("a place is asked for once for as long as it is good, and again when it is not") {
  const auto place = [](std::optional<std::chrono::seconds> lifetime) {
    return HubLocation{.url = weightfs::net::Url::parse("http://storage/x"),
                       .signed_elsewhere = true,
                       .lifetime = lifetime};
  };
  for (const auto& [lifetime, asked] :
       std::vector<std::pair<std::optional<std::chrono::seconds>, int>>{
           {3600s, 1}, {std::nullopt, 1}, {0s, 3}, {-5s, 3}}) {
    Locations locations;
    int times = 0;
    Locations::Found found;
    for (int i = 0; i < 3; ++i) {
      found = locations.get("file", {}, [&](const std::stop_token&) {
        ++times;
        return place(lifetime);
      });
    }
    CHECK(times == asked);
    locations.forget("file", found);
    locations.get("file", {}, [&](const std::stop_token&) {
      ++times;
      return place(lifetime);
    });
    CHECK(times == asked + 1);
  }
  // Whoever finds out late that an old one is no good leaves the new one.
  Locations locations;
  int times = 0;
  const auto find = [&](const std::stop_token&) {
    ++times;
    return place(3600s);
  };
  const Locations::Found old = locations.get("file", {}, find);
  locations.forget("file", old);
  locations.get("file", {}, find);
  locations.forget("file", old);
  locations.get("file", {}, find);
  CHECK(times == 2);
}
