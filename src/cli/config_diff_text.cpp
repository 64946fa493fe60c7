// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/config_diff_text.hpp"

#include "cli/printable.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

std::string outcome_text(const api::ModelDiff& model) {
  if (!model.outcome) return "";
  return ": " + *model.outcome + (model.reason ? ", " + printable(*model.reason) : "");
}

}  // namespace

std::string config_diff_text(const api::ConfigDiff& diff) {
  std::string text;
  for (const api::ModelDiff& model : diff.models) {
    const std::string source = model.source.empty() ? "" : " from " + printable(model.source);
    text += fmt::format("model {}: {}{}{}\n", printable(model.name), model.change, source,
                        outcome_text(model));
  }
  if (diff.tenants) text += "tenants: they differ\n";
  for (const api::SettingDiff& setting : diff.settings) {
    text +=
        fmt::format("{}: {} -> {} ({}), {}\n", setting.name, printable(setting.running),
                    printable(setting.configured), printable(setting.origin),
                    setting.takes == "reload" ? "upon reload" : "after a restart of the daemon");
  }
  return text;
}

}  // namespace weightfs::cli
