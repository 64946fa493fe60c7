// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/settings.hpp"

#include <span>
#include <string>
#include <string_view>

namespace weightfs::cli {

/// What the value is in JSON; in a flag or the environment all are text.
/// Paths are text with ':' between them, as in PATH, or a list in JSON.
enum class SettingKind { kText, kPaths, kNumber, kBoolean };

/// One row of the table of settings. Everything that a person sees of a setting comes from here:
/// its key in the configuration file is `name`, the flag and the variable follow from it.
struct Setting {
  std::string_view name;
  SettingKind kind;
  std::string_view value_name;    ///< in help: PATH, SIZE, ...; empty for booleans
  std::string_view default_text;  ///< goes through `apply` like any other
  std::string_view help;
  /// Error(kInvalid) saying what is wrong with the text.
  void (*apply)(Settings& settings, const std::string& text);
  std::string (*show)(const Settings& settings);
  /// A variable of others' making that says the same, next to ours; empty: none.
  std::string_view known_variable = {};
};

/// All settings but `models`, which is a list. In the order in which they are shown.
[[nodiscard]] std::span<const Setting> setting_table() noexcept;
/// Whether a daemon takes it over upon `reload`; the others take a restart.
[[nodiscard]] bool taken_on_reload(std::string_view name) noexcept;
/// nullptr where there is none.
[[nodiscard]] const Setting* find_setting(std::string_view name) noexcept;

/// "--part-size"; for a boolean that is on by default "--no-passthrough".
[[nodiscard]] std::string flag(const Setting& setting);
/// What giving the flag of a boolean means: "true", or "false" for a --no- flag.
[[nodiscard]] std::string flag_value(const Setting& setting);
/// "WEIGHTFS_PART_SIZE".
[[nodiscard]] std::string environment_variable(const Setting& setting);

}  // namespace weightfs::cli
