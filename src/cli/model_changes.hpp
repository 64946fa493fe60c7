// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "catalog/catalog.hpp"
#include "cli/settings.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weightfs::cli {

/// The reason of pins that the configuration has set, and may take away.
inline constexpr std::string_view kDeclaredPin = "the configuration";

/// One thing that is to be done to the catalog so that it is as the configuration says.
struct ModelChange {
  enum class Kind {
    kAdd,       ///< a new name
    kAdopt,     ///< added by hand before; from now on it goes when the configuration drops it
    kResource,  ///< the same name, from another source
    kRemove,    ///< the configuration does not have it any more
    kPin,
    kUnpin,
    kConfirm,
  };
  Kind kind = Kind::kAdd;
  std::string name;
  std::string source;  ///< for kAdd and kResource
  bool operator==(const ModelChange&) const = default;
};
[[nodiscard]] std::string_view word(ModelChange::Kind kind) noexcept;

/// What differs between the names that there are and those that are declared; in the order in which
/// it is to be done: what goes makes place for what comes. Only a file declares a model: one that
/// comes from a flag or the environment is added, and then left to people. Pure.
[[nodiscard]] std::vector<ModelChange> changes(const std::vector<catalog::Model>& there,
                                               const std::vector<ModelSetting>& declared);

}  // namespace weightfs::cli
