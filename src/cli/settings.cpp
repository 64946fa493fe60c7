// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/settings.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/config_file.hpp"
#include "cli/setting_table.hpp"
#include "snapshot/reference.hpp"
#include "store/filesystem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::cli {

namespace {

constexpr std::uint64_t kMaxConfigBytes = 4ULL << 20;
constexpr const char* kModelsVariable = "WEIGHTFS_MODELS";

using Values = std::map<std::string, std::string>;

std::optional<std::string> value_of(const Values& values, std::string_view key) {
  const auto found = values.find(std::string(key));
  if (found == values.end()) return std::nullopt;
  return found->second;
}

/// A variable that is set to nothing counts as not set, as people expect of NAME= before a command.
std::optional<std::string> variable_of(const Values& environment, std::string_view name) {
  auto value = value_of(environment, name);
  if (value && value->empty()) value.reset();
  return value;
}

struct ConfigPath {
  std::filesystem::path path;
  bool required = false;  ///< somebody named it
};

ConfigPath config_path(const SettingSources& sources) {
  if (sources.config) return {*sources.config, true};
  if (const auto named = variable_of(sources.environment, kConfigVariable)) return {*named, true};
  return {std::filesystem::path(kDefaultConfig), false};
}

/// Nothing where there is no file, and nobody named one.
std::string config_text(const SettingSources& sources, UnknownKeys unknown_keys) {
  if (sources.config_text) return *sources.config_text;
  const ConfigPath config = config_path(sources);
  try {
    return read_file(config.path, kMaxConfigBytes);
  } catch (const Error& error) {
    const bool absent = error.code() == Errc::kNotFound ||
                        (error.code() == Errc::kPermission && unknown_keys == UnknownKeys::kIgnore);
    if (absent && !config.required) return "";
    throw Error(error.code(), fmt::format("configuration file: {}", error.what()));
  }
}

ConfigFile parsed_config(const std::string& text, const SettingSources& sources,
                         UnknownKeys unknown_keys) {
  if (text.empty() && !config_path(sources).required) return {};
  return parse_config(text, fmt::format("file {}", config_path(sources).path.string()),
                      unknown_keys);
}

/// Where the text of a setting stands, highest precedence first.
std::pair<std::string, std::string> text_and_origin(const Setting& setting,
                                                    const SettingSources& sources,
                                                    const ConfigFile& file) {
  if (const auto text = value_of(sources.flags, setting.name)) {
    return {*text, "flag " + flag(setting)};
  }
  const std::string variable = environment_variable(setting);
  if (const auto text = variable_of(sources.environment, variable)) {
    return {*text, "environment " + variable};
  }
  if (!setting.known_variable.empty()) {
    if (const auto text = variable_of(sources.environment, setting.known_variable)) {
      return {*text, fmt::format("environment {}", setting.known_variable)};
    }
  }
  if (const auto text = value_of(file.values, setting.name)) {
    return {*text, "file " + config_path(sources).path.string()};
  }
  return {std::string(setting.default_text), "default"};
}

void apply(const Setting& setting, const std::string& text, const std::string& origin,
           Settings& settings) {
  try {
    setting.apply(settings, text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}: {}", origin, setting.name, error.what()));
  }
}

ModelSetting parse_model(const std::string& text, const std::string& origin) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(Errc::kInvalid,
                fmt::format("{}: '{}' is not NAME=SOURCE, as in org/name=https://host/models/name/",
                            origin, snapshot::shown_source(text)));
  }
  return {text.substr(0, equals), text.substr(equals + 1), origin};
}

std::vector<ModelSetting> models_of_environment(const SettingSources& sources) {
  std::vector<ModelSetting> models;
  const auto list = value_of(sources.environment, kModelsVariable);
  if (!list) return models;
  std::size_t begin = 0;
  while (begin < list->size()) {
    const std::size_t end = std::min(list->find_first_of(" \t\n", begin), list->size());
    if (end > begin) {
      models.push_back(parse_model(list->substr(begin, end - begin),
                                   fmt::format("environment {}", kModelsVariable)));
    }
    begin = end + 1;
  }
  return models;
}

std::vector<ModelSetting> all_models(const SettingSources& sources, const ConfigFile& file) {
  std::vector<ModelSetting> flags;
  for (const std::string& text : sources.model_flags) {
    flags.push_back(parse_model(text, "flag --model"));
  }
  std::vector<ModelSetting> all;
  for (const auto& place : {flags, models_of_environment(sources), file.models}) {
    const std::size_t higher = all.size();
    for (const ModelSetting& model : place) {
      const auto same = std::ranges::find(all, model.name, &ModelSetting::name);
      if (same == all.end()) {
        all.push_back(model);
      } else if (same - all.begin() >= static_cast<std::ptrdiff_t>(higher)) {
        throw Error(Errc::kInvalid,
                    fmt::format("{}: the model {} is named twice", model.origin, model.name));
      }
    }
  }
  return all;
}

std::vector<cache::Tenant> with_models(std::vector<cache::Tenant> tenants,
                                       const std::vector<ModelSetting>& models) {
  for (const ModelSetting& model : models) {
    if (model.tenant.empty()) continue;
    const auto tenant = std::ranges::find(tenants, model.tenant, &cache::Tenant::name);
    if (tenant == tenants.end()) {
      throw Error(Errc::kInvalid, fmt::format("{}: model {}: there is no tenant {}", model.origin,
                                              model.name, model.tenant));
    }
    tenant->models.push_back(model.name);
  }
  return tenants;
}

void work_out_what_was_left_open(Settings& settings, unsigned processors) {
  if (settings.state.empty()) settings.state = settings.stores.front().string() + "-state";
  if (settings.hash_threads == 0) settings.hash_threads = std::clamp(processors / 2, 1U, 8U);
  if (settings.fuse_threads == 0) settings.fuse_threads = std::clamp(processors, 2U, 16U);
}

/// As the Hub's own client finds its token, but for the file in a person's home.
void find_hub_token(Settings& settings, const Values& environment) {
  const auto implicit = variable_of(environment, "HF_HUB_DISABLE_IMPLICIT_TOKEN");
  if (implicit && *implicit != "0") return;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (settings.hub.token.empty())
      settings.hub.token = variable_of(environment, name).value_or("");
  }
  const auto home = variable_of(environment, "HF_HOME");
  if (settings.hub.token_file.empty() && home) {
    settings.hub.token_file = std::filesystem::path(*home) / "token";
  }
}

/// One inside the other would make wiping the store lose the state, or the store refuse its own
/// files.
void check_apart(const Settings& settings) {
  const auto check = [](const char* one_name, const std::filesystem::path& one,
                        const char* other_name, const std::filesystem::path& other) {
    const std::string one_folder = one.string() + "/";
    const std::string other_folder = other.string() + "/";
    if (!one_folder.starts_with(other_folder) && !other_folder.starts_with(one_folder)) return;
    throw Error(Errc::kInvalid,
                fmt::format("{} ({}) and {} ({}) must be two directories, neither inside the other",
                            one_name, one.string(), other_name, other.string()));
  };
  for (auto store = settings.stores.begin(); store != settings.stores.end(); ++store) {
    check("store", *store, "state", settings.state);
    for (auto other = settings.stores.begin(); other != store; ++other) {
      check("store", *store, "store", *other);
    }
  }
}

/// strict holds a file in the store until it is verified.
void check_strict_keeps(const LoadedSettings& loaded) {
  const Settings& settings = loaded.settings;
  const bool keeps = settings.keeps() && settings.admission != Admission::kNever;
  if (settings.verify != fetch::Verify::kStrict || keeps) return;
  const char* const other = settings.mode == Mode::kProd ? "admission" : "mode";
  const auto shown = [&](std::string_view name) {
    const auto found = std::ranges::find(loaded.effective, name, &EffectiveSetting::name);
    return fmt::format("{} {} ({})", found->name, found->value, found->origin);
  };
  throw Error(Errc::kInvalid,
              fmt::format("{} and {} exclude each other: strict needs the store, which is left "
                          "alone then",
                          shown("verify"), shown(other)));
}

void check_floors(const Settings& settings) {
  if (settings.tenants.empty()) return;
  std::vector<store::VolumeStatus> volumes;
  for (const std::filesystem::path& store : settings.stores) {
    const store::Space space = store::space_for(store);
    volumes.push_back({.directory = store,
                       .state = store::VolumeState::kUsable,
                       .error = {},
                       .filesystem = space.device,
                       .usage = {.capacity = space.capacity, .free = space.free}});
  }
  cache::check_tenants(settings.tenants, cache::capacity(settings.limits, volumes));
}

}  // namespace

std::filesystem::path config_file(const SettingSources& sources) {
  return config_path(sources).path;
}

LoadedSettings load_settings(const SettingSources& sources) {
  LoadedSettings loaded;
  loaded.file_text = config_text(sources, UnknownKeys::kRefuse);
  const ConfigFile file = parsed_config(loaded.file_text, sources, UnknownKeys::kRefuse);
  for (const Setting& setting : setting_table()) {
    const auto [text, origin] = text_and_origin(setting, sources, file);
    apply(setting, text, origin, loaded.settings);
    loaded.effective.push_back({std::string(setting.name), "", origin});
  }
  loaded.settings.models = all_models(sources, file);
  loaded.settings.tenants = with_models(file.tenants, loaded.settings.models);
  work_out_what_was_left_open(loaded.settings, sources.processors);
  find_hub_token(loaded.settings, sources.environment);
  loaded.settings.credentials.environment = sources.environment;
  check_apart(loaded.settings);
  for (EffectiveSetting& effective : loaded.effective) {
    effective.value = find_setting(effective.name)->show(loaded.settings);
  }
  check_strict_keeps(loaded);
  check_floors(loaded.settings);
  return loaded;
}

EffectiveSetting load_setting(std::string_view name, const SettingSources& sources) {
  const Setting* setting = find_setting(name);
  if (setting == nullptr) throw Error(Errc::kInternal, fmt::format("no setting {}", name));
  ConfigFile file;
  const bool decided = value_of(sources.flags, name).has_value() ||
                       variable_of(sources.environment, environment_variable(*setting)).has_value();
  if (!decided) {
    const std::string text = config_text(sources, UnknownKeys::kIgnore);
    file = parsed_config(text, sources, UnknownKeys::kIgnore);
  }
  const auto [text, origin] = text_and_origin(*setting, sources, file);
  Settings settings;
  apply(*setting, text, origin, settings);
  return {std::string(name), setting->show(settings), origin};
}

}  // namespace weightfs::cli
