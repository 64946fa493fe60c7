// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/config_file.hpp"

#include "base/error.hpp"
#include "cli/nearest.hpp"
#include "cli/setting_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace weightfs::cli {

namespace {

using nlohmann::json;

constexpr std::string_view kModelsKey = "models";
constexpr std::string_view kNameKey = "name";
constexpr std::string_view kSourceKey = "source";

[[noreturn]] void refuse(const std::string& origin, const std::string& what) {
  throw Error(Errc::kInvalid, fmt::format("{}: {}", origin, what));
}

[[noreturn]] void refuse_key(const std::string& origin, const std::string& key,
                             std::span<const std::string_view> known) {
  const std::string_view meant = nearest(key, known);
  refuse(origin, meant.empty()
                     ? fmt::format("unknown key \"{}\"", key)
                     : fmt::format("unknown key \"{}\"; did you mean \"{}\"?", key, meant));
}

/// A list of paths as text; nothing where it is something else.
std::optional<std::string> joined_paths(const json& list) {
  if (!list.is_array() || list.empty()) return std::nullopt;
  std::string paths;
  for (const json& path : list) {
    if (!path.is_string() || path.get_ref<const std::string&>().find(':') != std::string::npos)
      return std::nullopt;
    if (!paths.empty()) paths += ':';
    paths += path.get_ref<const std::string&>();
  }
  return paths;
}

std::string value_text(const Setting& setting, const json& value, const std::string& origin) {
  const char* expected = "text";
  switch (setting.kind) {
    case SettingKind::kText:
      // Sizes may be plain numbers of bytes.
      if (value.is_string()) return value.get<std::string>();
      if (setting.value_name == "SIZE" && value.is_number_unsigned()) return value.dump();
      break;
    case SettingKind::kPaths:
      if (value.is_string()) return value.get<std::string>();
      if (const auto paths = joined_paths(value)) return *paths;
      expected = "a path or a list of paths, none with a ':'";
      break;
    case SettingKind::kNumber:
      if (value.is_number_unsigned()) return value.dump();
      expected = "a whole number";
      break;
    case SettingKind::kBoolean:
      if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
      expected = "true or false";
      break;
  }
  refuse(origin, fmt::format("\"{}\" must be {}, not {}", setting.name, expected,
                             value.dump(-1, ' ', false, json::error_handler_t::replace)));
}

std::vector<ModelSetting> parse_models(const json& list, const std::string& origin) {
  static constexpr std::array kKeys{kNameKey, kSourceKey};
  if (!list.is_array()) refuse(origin, "\"models\" must be a list of {\"name\", \"source\"}");
  std::vector<ModelSetting> models;
  for (const json& entry : list) {
    const std::string place = fmt::format("models[{}]", models.size());
    if (!entry.is_object()) refuse(origin, place + " must be {\"name\", \"source\"}");
    for (const auto& [key, value] : entry.items()) {
      if (std::ranges::find(kKeys, key) == kKeys.end()) {
        refuse_key(fmt::format("{}: {}", origin, place), key, kKeys);
      }
      if (!value.is_string()) refuse(origin, fmt::format("{}.{} must be text", place, key));
    }
    if (!entry.contains(kNameKey) || !entry.contains(kSourceKey)) {
      refuse(origin, place + " needs a \"name\" and a \"source\"");
    }
    models.push_back({entry[std::string(kNameKey)].get<std::string>(),
                      entry[std::string(kSourceKey)].get<std::string>(), origin});
  }
  return models;
}

}  // namespace

ConfigFile parse_config(std::string_view text, const std::string& origin,
                        UnknownKeys unknown_keys) {
  json root;
  try {
    root = json::parse(text, nullptr, true, true);
  } catch (const json::parse_error& error) {
    refuse(origin, fmt::format("not JSON: {}", error.what()));
  }
  if (!root.is_object()) refuse(origin, "must be a JSON object of settings");

  std::vector<std::string_view> known{kModelsKey};
  for (const Setting& setting : setting_table()) known.push_back(setting.name);

  ConfigFile file;
  for (const auto& [key, value] : root.items()) {
    const Setting* setting = find_setting(key);
    if (unknown_keys == UnknownKeys::kIgnore) {
      if (setting != nullptr && value.is_string()) file.values[key] = value.get<std::string>();
    } else if (setting != nullptr) {
      file.values[key] = value_text(*setting, value, origin);
    } else if (key == kModelsKey) {
      file.models = parse_models(value, origin);
    } else {
      refuse_key(origin, key, known);
    }
  }
  return file;
}

}  // namespace weightfs::cli
