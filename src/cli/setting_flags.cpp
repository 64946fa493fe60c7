// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/setting_flags.hpp"

#include "base/error.hpp"
#include "cli/exit_code.hpp"
#include "cli/setting_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace weightfs::cli {

namespace {

constexpr std::string_view kPathValue = "PATH";

std::string help_of(const Setting& setting) {
  std::string help(setting.help);
  if (setting.kind != SettingKind::kBoolean && !setting.default_text.empty()) {
    help += fmt::format(" Default: {}.", setting.default_text);
  }
  return help;
}

/// Of those with a ':' between them.
std::string absolute_paths(const std::string& text) {
  std::string all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) all += std::filesystem::absolute(text.substr(begin, end - begin)).string();
    if (end < text.size()) all += ':';
    begin = end + 1;
  }
  return all;
}

}  // namespace

void SettingFlags::declare(Options& options) {
  options.repeated_option(
      {"--model", "NAME=SOURCE", "A model to add at start; may be given again for more."}, models_);
  for (const Setting& setting : setting_table()) {
    if (setting.name == "socket") continue;
    const std::string key(setting.name);
    if (setting.kind == SettingKind::kBoolean) {
      options.flag(flag(setting), help_of(setting),
                   [this, key, value = flag_value(setting)] { values_[key] = value; });
      continue;
    }
    const bool path = setting.value_name == kPathValue;
    const bool paths = setting.kind == SettingKind::kPaths;
    const auto take = [this, key, path, paths](const std::string& text) {
      std::string& value = values_[key];
      if (paths) {
        value = absolute_paths(text);
      } else {
        value = path && !text.empty() ? std::filesystem::absolute(text).string() : text;
      }
    };
    options.option({flag(setting), std::string(setting.value_name), help_of(setting)}, take);
  }
}

LoadedSettings SettingFlags::load(const Context& context,
                                  const std::optional<std::string>& file_text) const {
  SettingSources sources = context.setting_sources();
  sources.config_text = file_text;
  sources.flags.insert(values_.begin(), values_.end());
  sources.model_flags = models_;
  try {
    return load_settings(sources);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

std::vector<std::string> SettingFlags::arguments(const Context& context) const {
  std::vector<std::string> arguments;
  const auto add = [&](const std::string& name, const std::string& value) {
    arguments.push_back(name);
    arguments.push_back(value);
  };
  if (!context.config().empty()) {
    add("--config", std::filesystem::absolute(context.config()).string());
  }
  for (const auto& [key, value] : values_) {
    const Setting& setting = *find_setting(key);
    if (setting.kind == SettingKind::kBoolean) {
      arguments.push_back(flag(setting));
    } else {
      add(flag(setting), value);
    }
  }
  for (const std::string& model : models_) add("--model", model);
  return arguments;
}

}  // namespace weightfs::cli
