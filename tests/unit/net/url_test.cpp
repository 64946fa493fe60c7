// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/url.hpp"

#include "base/error.hpp"
#include "net/percent_encoding.hpp"
#include "net/redirect.hpp"
#include "net/redirect_target.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

using weightfs::Errc;
using weightfs::Error;
using namespace weightfs::net;

TEST_CASE("a URL is taken apart into origin, path and query") {
  const Url url = Url::parse("HTTPS://Models.Example.com/a%20b/c?x=1&y=2");
  CHECK(url.origin() == Origin{"https", "models.example.com", 443});
  CHECK(url.path() == "/a%20b/c");
  CHECK(url.query() == "x=1&y=2");
  CHECK(url.display() == "https://models.example.com/a%20b/c");
  CHECK(Url::parse("http://[::1]:8080/").origin() == Origin{"http", "[::1]", 8080});
  CHECK(Url::parse("http://h:8080/").origin().authority() == "h:8080");
  CHECK(Url::parse("http://h").path() == "/");
}

TEST_CASE("what must not stand in a URL is encoded, what is encoded stays") {
  CHECK(Url::parse("http://h/a b/\xff/%2e%2E/..").text() == "http://h/a%20b/%ff/%2e%2E/..");
}

TEST_CASE("bad URLs are refused without their query in the message") {
  for (const std::string text :
       {"", "h/a", "/a", "ftp://h/a", "file:///a", "http://", "http:///a", "http://h:0/",
        "http://h:99999/", "http://user@h/", "http://user:pass@h/", "http://h/a#b", "http://h/\n",
        "http://h /a?token=secret"}) {
    INFO(text);
    try {
      static_cast<void>(Url::parse(text));
      FAIL("taken");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kInvalid);
      CHECK(std::string(error.what()).find("secret") == std::string::npos);
      CHECK(std::string(error.what()).find("pass@") == std::string::npos);
    }
  }
  CHECK_THROWS_AS(Url::parse(std::string("http://h/a\0b", 12)), Error);
}

TEST_CASE("loopback is recognised, and what looks like it is not") {
  for (const char* text : {"http://localhost/", "http://a.localhost/", "http://127.0.0.1/",
                           "http://127.9.9.9:1/", "http://[::1]/"}) {
    INFO(text);
    CHECK(Url::parse(text).origin().is_loopback());
  }
  for (const char* text : {"http://localhost.example.com/", "http://127.example.com/",
                           "http://10.0.0.1/", "http://[::2]/"}) {
    INFO(text);
    CHECK_FALSE(Url::parse(text).origin().is_loopback());
  }
}

TEST_CASE("percent encoding keeps bytes as they are") {
  CHECK(percent_encode("a/b?c#d%e f\xff~-._") == "a%2Fb%3Fc%23d%25e%20f%FF~-._");
  CHECK(percent_encode_path("dir 1/\xe4.bin") == "dir%201/%E4.bin");
  CHECK(percent_decode("a%2Fb%ff+") == "a/b\xff+");
  CHECK_FALSE(percent_decode("%"));
  CHECK_FALSE(percent_decode("%1"));
  CHECK_FALSE(percent_decode("%1g"));
}

namespace {

const Headers kHeaders = {{"Authorization", "Bearer t"}, {"Cookie", "c"},
                          {"X-Amz-Security-Token", "t"}, {"PRIVATE-TOKEN", "t"},
                          {"If-Match", "\"e\""},         {"Range", "bytes=0-1"}};
const Headers kHarmless = {{"If-Match", "\"e\""}, {"Range", "bytes=0-1"}};

Hop follow(const std::string& from, const std::string& location) {
  return follow_redirect({.url = Url::parse(from), .headers = kHeaders}, location);
}

}  // namespace

TEST_CASE("secrets follow a redirect within an origin only") {
  struct Row {
    std::string name;
    std::string location;
    std::string target;
    bool keeps_secrets;
  };
  const std::vector<Row> rows = {
      {"an absolute path", "/x", "https://h/x", true},
      {"a relative path", "x", "https://h/a/x", true},
      {"the same host spelled out", "https://h:443/x", "https://h:443/x", true},
      {"the same host in capitals", "https://H/x", "https://h/x", true},
      {"another host", "https://cdn/x?sig=1", "https://cdn/x?sig=1", false},
      {"a host below it", "https://a.h/x", "https://a.h/x", false},
      {"another port", "https://h:8443/x", "https://h:8443/x", false},
      {"a host without its scheme", "//cdn/x", "https://cdn/x", false},
      {"a fragment is dropped", "/x#y", "https://h/x", true},
      {"blanks are encoded", "/x y", "https://h/x%20y", true},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    const Hop hop = follow("https://h/a/b", row.location);
    CHECK(hop.url.origin() == Url::parse(row.target).origin());
    CHECK(hop.url.path() == Url::parse(row.target).path());
    CHECK(hop.headers == (row.keeps_secrets ? kHeaders : kHarmless));
  }
}

TEST_CASE("a secret that stayed behind does not come back with the next hop") {
  const Hop away = follow("https://h/a", "https://cdn/a");
  CHECK(follow_redirect(away, "https://h/a").headers == kHarmless);
}

TEST_CASE("redirects never go from https to http, nor out of HTTP, nor nowhere") {
  for (const std::string location :
       {"http://h/a", "http://cdn/a", "ftp://h/a", "file:///etc/passwd", "gopher://h/",
        "https://user:pass@cdn/a", "https://", "https:///a", "", "http:"}) {
    INFO(location);
    try {
      static_cast<void>(follow("https://h/a", location));
      FAIL("followed");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kInvalid);
    }
  }
  CHECK(follow("http://h/a", "https://h/a").url.origin().scheme == "https");
  CHECK(follow("http://h/a", "https://h/a").headers == kHarmless);
  CHECK(follow("https://h/a", "/b?u=http:///x").url.query() == "u=http:///x");
}

TEST_CASE("nobody may send us to this machine itself, or to its cloud's metadata") {
  const auto origin = [](const char* url) { return Url::parse(url).origin(); };
  const Origin far = origin("https://hub.example"), near = origin("http://127.0.0.1:8080");
  for (const char* address :
       {"169.254.169.254", "169.254.0.1", "fe80::1%eth0", "[fe80::1]", "fd00:ec2::254",
        "::ffff:169.254.169.254", "100.100.100.200", "0.0.0.0", "::"}) {
    INFO(address);
    CHECK(!may_lead_to(far, address));
    CHECK(!may_lead_to(near, address));
  }
  for (const char* address : {"127.0.0.1", "127.8.8.8", "::1", "[::1]", "::ffff:127.0.0.1"}) {
    INFO(address);
    CHECK(!may_lead_to(far, address));
    CHECK(may_lead_to(near, address));
  }
  for (const char* address :
       {"10.0.0.1", "192.168.1.1", "8.8.8.8", "2001:db8::1", "cdn.example", ""}) {
    INFO(address);
    CHECK(may_lead_to(far, address));
  }
  const Hop hop{.url = Url::parse("http://hub.example/a"), .headers = {}};
  CHECK_THROWS_AS(follow_redirect(hop, "http://169.254.169.254/latest/"), Error);
  CHECK_THROWS_AS(follow_redirect(hop, "http://[::1]/"), Error);
  CHECK(!follow_redirect(hop, "/b").sent_by);
  CHECK(follow_redirect(hop, "http://cdn.example/b").sent_by == hop.url.origin());
  CHECK(follow_redirect(follow_redirect(hop, "http://cdn.example/b"), "/c").sent_by ==
        hop.url.origin());
}
