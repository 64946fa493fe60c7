// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/quantity.hpp"
#include "cli/credential_check.hpp"
#include "cli/model_check.hpp"
#include "cli/outside_mount.hpp"
#include "cli/setting_flags.hpp"
#include "cli/table.hpp"
#include "control/json_codec.hpp"
#include "snapshot/reference.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

class ConfigCheckCommand final : public Command {
 public:
  void declare(Options& options) override { flags_.declare(options); }

  ExitCode run(Context& context) override {
    const LoadedSettings loaded = flags_.load(context);
    check_models(loaded.settings.models);
    check_credentials(loaded.settings, OutsideMount());
    if (context.json()) {
      context.print_json(to_json(loaded));
    } else {
      print(context.streams(), loaded);
    }
    return ExitCode::kDone;
  }

 private:
  static control::Json to_json(const LoadedSettings& loaded) {
    control::Json json;
    json["settings"] = control::Json::array();
    for (const EffectiveSetting& setting : loaded.effective) {
      json["settings"].push_back(
          {{"name", setting.name}, {"value", setting.value}, {"origin", setting.origin}});
    }
    json["models"] = control::Json::array();
    for (const ModelSetting& model : loaded.settings.models) {
      json["models"].push_back({{"name", model.name},
                                {"source", snapshot::shown_source(model.source)},
                                {"origin", model.origin}});
    }
    json["tenants"] = control::Json::array();
    for (const cache::Tenant& tenant : loaded.settings.tenants) {
      json["tenants"].push_back({{"name", tenant.name},
                                 {"floor", exact_share(tenant.floor)},
                                 {"cap", exact_share(tenant.cap)},
                                 {"path", tenant.path},
                                 {"namespace", tenant.name_space}});
    }
    return json;
  }

  static void print(Streams& streams, const LoadedSettings& loaded) {
    Table table({{"SETTING"}, {"VALUE"}, {"FROM"}});
    for (const EffectiveSetting& setting : loaded.effective) {
      table.add({setting.name, setting.value, setting.origin});
    }
    for (const ModelSetting& model : loaded.settings.models) {
      table.add({"model " + model.name, snapshot::shown_source(model.source), model.origin});
    }
    for (const cache::Tenant& tenant : loaded.settings.tenants) {
      table.add(
          {"tenant " + tenant.name,
           fmt::format("floor {}, cap {}", exact_share(tenant.floor), exact_share(tenant.cap)),
           "file"});
    }
    table.print(streams);
  }

  SettingFlags flags_;
};

}  // namespace

CommandEntry config_check_command() {
  return {
      .name = "config check",
      .summary = "Print the effective configuration and where each value is from",
      .text =
          "Puts flags, environment, configuration file and defaults together as the daemon would, "
          "and "
          "prints every setting with its origin. A mistake in any of them is named with its place, "
          "and "
          "the exit status is 2. Needs no daemon and changes nothing.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ConfigCheckCommand>()); },
  };
}

}  // namespace weightfs::cli
