// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/config_file.hpp"

#include "base/error.hpp"
#include "cli/exit_code.hpp"
#include "cli/nearest.hpp"
#include "cli/setting_table.hpp"
#include "cli/source_argument.hpp"
#include "snapshot/json_problem.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace weightfs::cli {

namespace {

using nlohmann::json;

constexpr std::string_view kModelsKey = "models";
constexpr std::string_view kTenantsKey = "tenants";
constexpr std::string_view kNameKey = "name";
constexpr std::string_view kSourceKey = "source";
constexpr std::string_view kTenantKey = "tenant";
constexpr std::string_view kExpectKey = "expect";

/// What may be said of a model, beside its texts.
struct ModelFlag {
  std::string_view key;
  bool ModelSetting::* member;
};
constexpr std::array kModelFlags{ModelFlag{"pin", &ModelSetting::pin},
                                 ModelFlag{"warm", &ModelSetting::warm},
                                 ModelFlag{"confirm", &ModelSetting::confirm},
                                 ModelFlag{"allow_missing", &ModelSetting::allow_missing}};

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
      // Sizes and rates may be plain numbers of bytes.
      if (value.is_string()) return value.get<std::string>();
      if (value.is_number_unsigned() &&
          (setting.value_name == "SIZE" || setting.value_name == "RATE")) {
        return value.dump();
      }
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

std::string text_of(const json& value, const std::string& origin, const std::string& place) {
  if (!value.is_string()) refuse(origin, place + " must be text");
  return value.get<std::string>();
}

/// "a", or ["a", "b"].
std::vector<std::string> texts_of(const json& value, const std::string& origin,
                                  const std::string& place) {
  const auto is_text = [](const json& one) { return one.is_string(); };
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array() || !std::ranges::all_of(value, is_text)) {
    refuse(origin, place + " must be text or a list of texts");
  }
  return value.get<std::vector<std::string>>();
}

/// {"base": SOURCE, ...} as PART=SOURCE each.
std::vector<std::string> parts_of(const json& value, const std::string& origin,
                                  const std::string& place) {
  if (!value.is_object()) refuse(origin, place + R"( must be {"PART": "SOURCE"})");
  std::vector<std::string> parts;
  for (const auto& [part, source] : value.items()) {
    parts.push_back(part + "=" + text_of(source, origin, fmt::format("{}.{}", place, part)));
  }
  return parts;
}

ModelSetting parse_model(const json& entry, const std::string& origin, const std::string& place) {
  static constexpr std::array<std::string_view, 12> kKeys{
      kNameKey,  kSourceKey,      kTenantKey, kExpectKey, "pin",   "warm",
      "confirm", "allow_missing", "allow",    "ignore",   "parts", "overlays"};
  if (!entry.is_object()) refuse(origin, place + " must be {\"name\", \"source\"}");
  ModelSetting model{.origin = origin, .declared = true};
  SourceArgument given;
  const auto list = [&](std::string_view key) -> std::vector<std::string>* {
    return key == kSourceKey   ? &given.sources
           : key == "allow"    ? &given.allow
           : key == "ignore"   ? &given.ignore
           : key == "overlays" ? &given.overlays
                               : nullptr;
  };
  for (const auto& [key, value] : entry.items()) {
    const std::string inner = fmt::format("{}.{}", place, key);
    const auto flag = std::ranges::find(kModelFlags, std::string_view(key), &ModelFlag::key);
    if (std::ranges::find(kKeys, key) == kKeys.end()) {
      refuse_key(fmt::format("{}: {}", origin, place), key, kKeys);
    } else if (flag != kModelFlags.end()) {
      if (!value.is_boolean()) refuse(origin, inner + " must be true or false");
      model.*(flag->member) = value.get<bool>();
    } else if (auto* const texts = list(key)) {
      *texts = texts_of(value, origin, inner);
    } else if (key == "parts") {
      given.parts = parts_of(value, origin, inner);
    } else {
      std::string& text = key == kNameKey     ? model.name
                          : key == kExpectKey ? model.expect
                                              : model.tenant;
      text = text_of(value, origin, inner);
    }
  }
  if (!entry.contains(kNameKey) || (given.sources.empty() && given.parts.empty())) {
    refuse(origin, place + " needs a \"name\" and a \"source\"");
  }
  try {
    model.source = given.reference();
  } catch (const UsageError& error) {
    refuse(origin, fmt::format("{}: {}", place, error.what()));
  }
  return model;
}

std::vector<ModelSetting> parse_models(const json& list, const std::string& origin) {
  if (!list.is_array()) refuse(origin, "\"models\" must be a list of {\"name\", \"source\"}");
  std::vector<ModelSetting> models;
  for (const json& entry : list) {
    models.push_back(parse_model(entry, origin, fmt::format("models[{}]", models.size())));
  }
  return models;
}

Share share_of(const json& value, const std::string& origin, const std::string& place) {
  if (value.is_number_unsigned()) return {.bytes = value.get<std::uint64_t>()};
  try {
    return parse_share(text_of(value, origin, place));
  } catch (const Error& error) {
    refuse(origin, fmt::format("{}: {}", place, error.what()));
  }
}

void parse_match(const json& match, const std::string& origin, const std::string& place,
                 cache::Tenant& tenant) {
  static constexpr std::array<std::string_view, 2> kKeys{"path", "namespace"};
  if (!match.is_object() || match.empty()) {
    refuse(origin, place + R"( must be {"path": PREFIX} or {"namespace": NAME})");
  }
  for (const auto& [key, value] : match.items()) {
    std::string& member = key == kKeys[0] ? tenant.path : tenant.name_space;
    if (key != kKeys[0] && key != kKeys[1]) {
      refuse_key(fmt::format("{}: {}", origin, place), key, kKeys);
    }
    member = text_of(value, origin, fmt::format("{}.{}", place, key));
    if (member.empty()) refuse(origin, fmt::format("{}.{} is empty", place, key));
  }
}

std::vector<cache::Tenant> parse_tenants(const json& list, const std::string& origin) {
  static constexpr std::array<std::string_view, 3> kKeys{"floor", "cap", "match"};
  if (!list.is_object()) {
    refuse(origin, R"("tenants" must be an object of {"floor", "cap", "match"})");
  }
  std::vector<cache::Tenant> tenants;
  for (const auto& [name, entry] : list.items()) {
    const std::string place = fmt::format("tenants.{}", name);
    if (!entry.is_object()) refuse(origin, place + R"( must be {"floor", "cap", "match"})");
    cache::Tenant tenant{.name = name};
    for (const auto& [key, value] : entry.items()) {
      const std::string inner = fmt::format("{}.{}", place, key);
      if (key == "floor") {
        tenant.floor = share_of(value, origin, inner);
      } else if (key == "cap") {
        tenant.cap = share_of(value, origin, inner);
      } else if (key == "match") {
        parse_match(value, origin, inner, tenant);
      } else {
        refuse_key(fmt::format("{}: {}", origin, place), key, kKeys);
      }
    }
    tenants.push_back(std::move(tenant));
  }
  return tenants;
}

}  // namespace

ConfigFile parse_config(std::string_view text, const std::string& origin,
                        UnknownKeys unknown_keys) {
  json root;
  try {
    root = json::parse(text, nullptr, true, true);
  } catch (const json::parse_error& error) {
    refuse(origin, fmt::format("not JSON: {}", snapshot::json_problem(error.what())));
  }
  if (!root.is_object()) refuse(origin, "must be a JSON object of settings");

  std::vector<std::string_view> known{kModelsKey, kTenantsKey};
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
    } else if (key == kTenantsKey) {
      file.tenants = parse_tenants(value, origin);
    } else {
      refuse_key(origin, key, known);
    }
  }
  return file;
}

}  // namespace weightfs::cli
