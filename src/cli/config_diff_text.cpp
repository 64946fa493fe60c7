// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/config_diff_text.hpp"

#include "cli/printable.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

std::string config_diff_text(const api::ConfigDiff& diff) {
  std::string text;
  for (const api::ModelDiff& model : diff.models) {
    const std::string source = model.source.empty() ? "" : " from " + printable(model.source);
    text += fmt::format("model {}: {}{}\n", printable(model.name), model.change, source);
  }
  if (diff.tenants) text += "tenants: they differ\n";
  for (const api::SettingDiff& setting : diff.settings) {
    text += fmt::format("{}: {} -> {} ({}), after a restart of the daemon\n", setting.name,
                        printable(setting.running), printable(setting.configured),
                        printable(setting.origin));
  }
  return text;
}

}  // namespace weightfs::cli
