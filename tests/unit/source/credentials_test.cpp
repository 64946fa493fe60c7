// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/credentials.hpp"

#include "net/redirect.hpp"
#include "net/url.hpp"
#include "source/failure.hpp"
#include "source/http/site.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

using weightfs::Errc;
using weightfs::Log;
using weightfs::net::Headers;
using weightfs::net::Url;
using weightfs::source::Credential;
using weightfs::source::Credentials;
using weightfs::source::parse_credentials;
using weightfs::test::failure_of;

namespace {

/// A folder with a credentials file, and whoever reads it.
struct Desk {
  Desk() = default;
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  ~Desk() { std::filesystem::remove_all(folder); }

  /// As people do: beside it, and then in its place.
  void write(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    std::ofstream(folder / "new") << text;
    ::chmod((folder / "new").c_str(), mode);
    std::filesystem::rename(folder / "new", folder / name);
  }
  void entries(const std::string& list, mode_t mode = 0600) const {
    write("credentials", "{\"credentials\": [" + list + "]}", mode);
  }
  [[nodiscard]] Headers headers(const std::string& url) {
    return credentials.of(Url::parse(url)).headers;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder / name; }

  static std::filesystem::path made() {
    char folder[] = "/tmp/weightfs-credentials-XXXXXX";
    return ::mkdtemp(folder);
  }

  const std::filesystem::path folder = made();
  Credentials credentials{
      {.file = path("credentials"), .environment = {{"TOKEN", " of-env \n"}, {"EMPTY", ""}}},
      Log::silent()};
};

Headers bearer(const std::string& token) {
  return {{"Authorization", "Bearer " + token}};
}

}  // namespace

TEST_CASE("an entry is for its own origin, its path and what is below") {
  Desk desk;
  desk.entries(R"({"url": "https://host/a", "token": "a"}, // comments may be there
                  {"url": "https://host/a/b/", "token": "ab"},
                  {"url": "https://host:8443", "token": "other"})");
  CHECK(desk.headers("https://host/a") == bearer("a"));
  CHECK(desk.headers("https://HOST:443/a/x?y=z") == bearer("a"));
  CHECK(desk.headers("https://host/a/b") == bearer("a"));
  CHECK(desk.headers("https://host/a/b/c") == bearer("ab"));
  CHECK(desk.headers("https://host:8443/anything") == bearer("other"));
  for (const char* url : {"https://host/", "https://host/ab", "http://host/a", "https://host:444/a",
                          "https://host.example/a", "https://other/a", "https://host/A"}) {
    CAPTURE(url);
    CHECK(desk.headers(url).empty());
  }
}

TEST_CASE("secrets are values, files or variables, and as tokens, passwords or headers") {
  Desk desk;
  desk.write("secret", " of-file\n");
  desk.entries(R"({"url": "https://h/1", "token_env": "TOKEN"},
                  {"url": "https://h/2", "token_file": ")" +
               desk.path("secret") + R"("},
                  {"url": "https://h/3", "username": "Aladdin", "password": "open sesame"},
                  {"url": "https://h/4", "header": "X-Key", "value": "a b"},
                  {"url": "https://h/5", "token_env": "EMPTY"},
                  {"url": "https://h/6", "token_file": "/nowhere"},
                  {"url": "https://h/7", "token": "SECRET\r\nX: y"},
                  {"url": "https://h/8", "ca_bundle": "/nowhere"})");
  CHECK(desk.headers("https://h/1") == bearer("of-env"));
  CHECK(desk.headers("https://h/2") == bearer("of-file"));
  CHECK(desk.headers("https://h/3") ==
        Headers{{"Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}});  // RFC 7617, 2
  CHECK(desk.headers("https://h/4") == Headers{{"X-Key", "a b"}});
  for (const char* url : {"https://h/5", "https://h/6", "https://h/7"}) {
    const auto failure = failure_of([&] { static_cast<void>(desk.headers(url)); });
    REQUIRE(failure);
    CHECK(failure->message.starts_with(std::string("credentials for ") + url));
    CHECK(failure->message.find("SECRET") == std::string::npos);
  }
  const Credential authorities = desk.credentials.of(Url::parse("https://h/8"));
  CHECK(authorities.tls.ca_bundle == "/nowhere");
  CHECK(authorities.origin.empty());
  desk.write("secret", "of-file-anew");
  CHECK(desk.headers("https://h/2") == bearer("of-file-anew"));
}

TEST_CASE("entries that cannot be meant are refused without showing what is in them") {
  for (const char* entry : {
           R"({"token": "SECRET"})",
           R"({"url": "https://h/"})",
           R"({"url": "https://h/", "token": ""})",
           R"({"url": "https://h/", "token": ["SECRET"]})",
           R"({"url": "https://h/", "token": "SECRET", "token_env": "X"})",
           R"({"url": "https://h/", "token": "SECRET", "username": "u", "password": "SECRET"})",
           R"({"url": "https://h/", "username": "u"})",
           R"({"url": "https://h/", "password": "SECRET"})",
           R"({"url": "https://h/", "username": "u:v", "password": "SECRET"})",
           R"({"url": "https://h/", "header": "Host", "value": "SECRET"})",
           R"({"url": "https://h/", "header": "accept", "value": "SECRET"})",
           R"({"url": "https://h/", "header": "a b", "value": "SECRET"})",
           R"({"url": "https://h/", "token_file": "relative"})",
           R"({"url": "https://h/", "client_key": "/k"})",
           R"({"url": "http://127.0.0.1/", "client_certificate": "/c"})",
           R"({"url": "https://h/", "tokens": "SECRET"})",
           R"({"url": "https://h/?sig=SECRET", "token": "SECRET"})",
           R"({"url": "https://u:SECRET@h/", "token": "SECRET"})",
           R"({"url": "ftp://h/", "token": "SECRET"})",
           R"({"url": "http://h/", "token": "SECRET"})",
           R"({"url": "http://h/", "token": "SECRET", "allow_plain": "yes"})",
           R"({"url": "https://h/", "token": "SECRET"}, {"url": "https://H/", "token": "x"})",
           "{\"url\": \"https://h/\", \"token\": \"SECRET\n\"}",
           R"({"url": "https://h/", "token": "SECRET)",
           R"("SECRET")",
       }) {
    CAPTURE(entry);
    const auto failure = failure_of([&] {
      static_cast<void>(parse_credentials(std::string("{\"credentials\": [") + entry + "]}"));
    });
    REQUIRE(failure);
    CHECK(failure->code == Errc::kInvalid);
    CHECK(failure->message.find("SECRET") == std::string::npos);
  }
  CHECK(parse_credentials(R"({"credentials": [
      {"url": "http://h/", "token": "x", "allow_plain": true},
      {"url": "http://127.0.0.1:80/", "token": "x"}, {"url": "http://[::1]/", "token": "x"}]})")
            .size() == 3);
}

TEST_CASE("a file that cannot be used is an error at first, and changes nothing later") {
  Desk absent;
  CHECK(absent.headers("https://h/").empty());
  CHECK(failure_of([&] { static_cast<void>(absent.credentials.files()); })->code ==
        Errc::kNotFound);

  Desk fresh;
  fresh.entries(R"({"url": "https://h/", "token": "one"})", 0602);
  const auto failure = failure_of([&] { static_cast<void>(fresh.headers("https://h/")); });
  REQUIRE(failure);
  CHECK(failure->code == Errc::kPermission);
  CHECK(failure->message.find("everybody may write it") != std::string::npos);
  ::chmod(fresh.path("credentials").c_str(), 0640);
  CHECK(fresh.headers("https://h/") == bearer("one"));
  fresh.write("credentials", "{");
  CHECK(fresh.headers("https://h/") == bearer("one"));
  fresh.entries(R"({"url": "https://h/", "token": "two"})");
  CHECK(fresh.headers("https://h/") == bearer("two"));
  std::filesystem::remove(fresh.path("credentials"));
  CHECK(fresh.headers("https://h/").empty());
}

TEST_CASE("a certificate that is replaced is another identity, and none goes to another origin") {
  Desk desk;
  desk.write("cert", "one");
  desk.entries(R"({"url": "https://h/", "client_certificate": ")" + desk.path("cert") + R"("})");
  const Url url = Url::parse("https://h/x");
  const Credential before = desk.credentials.of(url);
  CHECK(before.tls == desk.credentials.of(url).tls);
  desk.write("cert", "another");
  const Credential after = desk.credentials.of(url);
  CHECK(before.tls.certificate == after.tls.certificate);
  CHECK(before.tls != after.tls);

  const weightfs::net::Hop hop{.url = url, .headers = {}, .tls = after.tls};
  CHECK(follow_redirect(hop, "/y").tls == after.tls);
  CHECK(follow_redirect(hop, "https://other/y").tls == weightfs::net::TlsIdentity{});
}

TEST_CASE("every request of a source goes with the credentials for its URL") {
  Desk desk;
  weightfs::test::RangedOrigin origin({{"/m/one", {"content", "\"v\"", weightfs::test::kDate}}});
  desk.entries("{\"url\": \"" + origin.url("/m") + "\", \"token\": \"t\"}");
  weightfs::net::HttpClient http({});
  weightfs::source::HttpSource source(weightfs::snapshot::Reference::parse(origin.url("/m/one")),
                                      {http, &desk.credentials});
  const auto snapshot = source.resolve({});
  weightfs::test::CollectingSink sink(0);
  source.read(snapshot.files()[0], {0, 7}, sink, {});
  CHECK(sink.bytes == "content");
  const auto requests = origin.server().requests();
  CHECK(requests.size() >= 2);
  for (const auto& request : requests) CHECK(request.header("authorization") == "Bearer t");
}
