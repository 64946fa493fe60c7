// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/source_pool.hpp"

#include "source/failure.hpp"
#include "source/source_factory.hpp"

#include <catch2/catch_test_macros.hpp>

using weightfs::Errc;
using weightfs::Error;
using weightfs::net::HttpClient;
using weightfs::snapshot::Reference;
using weightfs::source::HubPool;
using weightfs::source::make_source;
using weightfs::source::SourcePool;
using weightfs::test::failure_of;

TEST_CASE("references that no HTTP source can have are refused") {
  HttpClient http({});
  HubPool hubs(http, {});
  for (const char* text : {"http://h/dir/?token=x", "http://h/..", "http://h/a%2Fb",
                           "http://h/a%00b", "http://h/%zz"}) {
    INFO(text);
    CHECK(failure_of([&] {
            static_cast<void>(make_source(Reference::parse(text), http, hubs));
          })->code == Errc::kInvalid);
  }
  CHECK(failure_of([&] {
          static_cast<void>(make_source(Reference::parse("s3://bucket/x"), http, hubs));
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
  CHECK(pool.get("hf://org/name") == pool.get("hf://models/org/name@main"));
  CHECK_THROWS_AS(pool.get("oci://host/name"), Error);
}
