// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/settings.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::cli {

/// What a configuration file says: the text of each setting it has, by name, and its models. A
/// value.
struct ConfigFile {
  std::map<std::string, std::string> values;
  std::vector<ModelSetting> models;
  std::vector<cache::Tenant> tenants;
};

/// Which keys must be known: a command that needs one setting is not stopped by another's spelling.
enum class UnknownKeys { kRefuse, kIgnore };

/// JSON with // and /* */ comments: an object of settings, "models": [{"name", "source"}]
/// and "tenants": {NAME: {"floor", "cap", "match": {"path", "namespace"}}}.
/// `origin` is the file, for messages. Error(kInvalid) names an unknown key and the nearest known
/// one, and a value of the wrong type.
[[nodiscard]] ConfigFile parse_config(std::string_view text, const std::string& origin,
                                      UnknownKeys unknown_keys);

}  // namespace weightfs::cli
