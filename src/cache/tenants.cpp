// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/tenants.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace weightfs::cache {

namespace {

bool is_at_or_below(std::string_view model, std::string_view path) {
  if (path.empty() || !model.starts_with(path)) return false;
  return model.size() == path.size() || path.ends_with('/') || model[path.size()] == '/';
}

bool is_in(std::string_view model, std::string_view name_space) {
  const std::size_t slash = model.rfind('/');
  return !name_space.empty() && slash != std::string_view::npos &&
         model.substr(0, slash) == name_space;
}

}  // namespace

std::optional<std::size_t> tenant_of(const std::vector<Tenant>& tenants, std::string_view model) {
  const auto named = [&](const Tenant& tenant) {
    return std::ranges::find(tenant.models, model) != tenant.models.end();
  };
  const auto match = [&](const Tenant& tenant) {
    return std::max(is_at_or_below(model, tenant.path) ? tenant.path.size() : 0,
                    is_in(model, tenant.name_space) ? tenant.name_space.size() : 0);
  };
  auto found = std::ranges::find_if(tenants, named);
  if (found == tenants.end()) found = std::ranges::max_element(tenants, {}, match);
  if (found == tenants.end() || (!named(*found) && match(*found) == 0)) return std::nullopt;
  return static_cast<std::size_t>(found - tenants.begin());
}

policy::Tenancy tenancy(const std::vector<Tenant>& tenants, const catalog::Catalog& catalog,
                        std::uint64_t capacity) {
  policy::Tenancy result;
  if (tenants.empty()) return result;
  for (const Tenant& tenant : tenants) {
    result.limits.push_back({.floor = tenant.floor.of(capacity), .cap = tenant.cap.of(capacity)});
  }
  std::unordered_map<Digest, std::size_t> owners;
  for (const catalog::Model& model : catalog.list()) {
    const auto tenant = tenant_of(tenants, model.name);
    if (!tenant) continue;
    for (const Digest& revision : model.revisions) owners.try_emplace(revision, *tenant);
  }
  result.tenant_of = [owners = std::move(owners)](const Digest& key) {
    const auto found = owners.find(key);
    return found == owners.end() ? std::nullopt : std::optional(found->second);
  };
  return result;
}

void check_tenants(const std::vector<Tenant>& tenants, std::uint64_t capacity) {
  std::uint64_t sum = 0;
  for (const Tenant& tenant : tenants) {
    const std::uint64_t floor = tenant.floor.of(capacity);
    const std::uint64_t cap = tenant.cap.of(capacity);
    if (floor > cap) {
      throw Error(Errc::kInvalid,
                  fmt::format("tenant {}: its floor, {}, is more than its cap, {}", tenant.name,
                              readable_size(floor), readable_size(cap)));
    }
    if (__builtin_add_overflow(sum, floor, &sum) || sum > capacity) {
      throw Error(Errc::kInvalid,
                  fmt::format("the floors of the tenants up to {} add up to more than the "
                              "capacity, which is {}",
                              tenant.name, readable_size(capacity)));
    }
  }
}

}  // namespace weightfs::cache
