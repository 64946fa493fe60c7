// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "catalog/model.hpp"
#include "snapshot/snapshot.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace weightfs::catalog {

/// Names and their models. A name is a path, and the names are a tree: none lies inside another.
using Models = std::map<std::string, Model, std::less<>>;

/// Whether `name` continues below `path`; "" is the root.
[[nodiscard]] bool is_below(std::string_view path, std::string_view name);
/// The first name below `path`, which lie in one run of the map; or any other, or the end.
[[nodiscard]] Models::const_iterator first_below(const Models& models, std::string_view path);
/// Error(kInvalid) where the name lies inside another or the other way round.
void check_conflicts(const Models& models, const std::string& name);
/// Whether `text` is a word for this revision of the model: see Catalog::revision.
[[nodiscard]] bool names_revision(const Model& model, const snapshot::Snapshot& revision,
                                  std::string_view text);
/// Error(kNotFound).
Model& require(Models& models, const std::string& name);

}  // namespace weightfs::catalog
