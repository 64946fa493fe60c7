// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/quantity.hpp"
#include "catalog/catalog.hpp"
#include "policy/room.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::cache {

/// One who shares the node. A value.
struct Tenant {
  std::string name;
  Share floor;                ///< of the capacity, or bytes: guaranteed
  Share cap{.percent = 100};  ///< of the capacity, or bytes: at most
  std::string path;           ///< has the model of this name and those below it; empty: not by path
  std::string name_space;     ///< has NAMESPACE/NAME for every NAME; empty: not by namespace
  std::vector<std::string> models;  ///< by their own names, whatever else is said
  bool operator==(const Tenant&) const = default;
};

/// The index of the tenant whose model this is: by its own name, else by the
/// longest path or namespace that matches.
[[nodiscard]] std::optional<std::size_t> tenant_of(const std::vector<Tenant>& tenants,
                                                   std::string_view model);

/// What policy::make_room goes by now. A snapshot is of the tenant of the first name that has it as
/// a revision. Linear in the revisions of all names.
[[nodiscard]] policy::Tenancy tenancy(const std::vector<Tenant>& tenants,
                                      const catalog::Catalog& catalog, std::uint64_t capacity);

/// Error(kInvalid), with the numbers, where the floors are more than the capacity, or a floor is
/// more than its cap.
void check_tenants(const std::vector<Tenant>& tenants, std::uint64_t capacity);

}  // namespace weightfs::cache
