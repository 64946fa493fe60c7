// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/tenants.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <vector>

namespace weightfs::cache {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("a model is its tenant's by its own name, by path or by namespace") {
  const std::vector<Tenant> tenants{{.name = "a", .path = "team-a"},
                                    {.name = "b", .path = "team-b/"},
                                    {.name = "c", .name_space = "org/c"},
                                    {.name = "d", .models = {"team-a/special"}},
                                    {.name = "e", .path = "team-a/deep/er"}};
  CHECK(tenant_of(tenants, "team-a") == 0);
  CHECK(tenant_of(tenants, "team-a/model") == 0);
  CHECK(tenant_of(tenants, "team-a/deep/model") == 0);
  CHECK_FALSE(tenant_of(tenants, "team-abc/model"));
  CHECK(tenant_of(tenants, "team-b/model") == 1);
  CHECK(tenant_of(tenants, "org/c/model") == 2);
  CHECK_FALSE(tenant_of(tenants, "org/c/deep/model"));
  CHECK_FALSE(tenant_of(tenants, "org/c"));
  CHECK(tenant_of(tenants, "team-a/special") == 3);
  CHECK(tenant_of(tenants, "team-a/deep/er/model") == 4);
  CHECK_FALSE(tenant_of({}, "team-a/model"));
}

TEST_CASE("more promises than there is room for are refused, with the numbers") {
  const auto check = [](const std::vector<Tenant>& tenants) { check_tenants(tenants, 1'000'000); };
  CHECK_NOTHROW(
      check({{.name = "a", .floor = {.percent = 60}}, {.name = "b", .floor = {.bytes = 400'000}}}));
  CHECK_THROWS_MATCHES(
      check({{.name = "a", .floor = {.percent = 60}}, {.name = "b", .floor = {.bytes = 400'001}}}),
      Error, MessageMatches(ContainsSubstring("up to b") && ContainsSubstring("1.00 MB")));
  CHECK_THROWS_MATCHES(check({{.name = "a", .floor = {.percent = 60}, .cap = {.percent = 50}}}),
                       Error, MessageMatches(ContainsSubstring("tenant a")));
}

}  // namespace
}  // namespace weightfs::cache
