// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "cache/limits.hpp"
#include "cache/mode.hpp"
#include "cache/tenants.hpp"
#include "fetch/fetcher.hpp"
#include "policy/references.hpp"
#include "source/credentials.hpp"
#include "source/hf/hub_pool.hpp"
#include "vfs/blob_checks.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::cli {

using cache::Mode;
using policy::Admission;

/// A model that the configuration names; the daemon adds it at start.
struct ModelSetting {
  std::string name;
  std::string source;
  std::string origin;     ///< as in EffectiveSetting
  bool declared = false;  ///< in the configuration file, which may take it away again
  bool pin = false;
  bool warm = false;
  bool confirm = false;        ///< each revision as soon as it is shown
  std::string tenant;          ///< empty: whose it is by path or namespace
  bool allow_missing = false;  ///< as of api::AddRequest, where it is added and where it is moved
  std::string expect = {};     ///< likewise

  bool operator==(const ModelSetting&) const = default;
};

/// What the keeper and the daemon are told. A value; made by load_settings, which fills every
/// member from the setting table (defaults live there and nowhere else).
struct Settings {
  std::vector<std::filesystem::path> stores;  ///< at least one; one for each disk
  std::filesystem::path state;
  std::filesystem::path socket;
  std::string user;  ///< empty: "weightfs" where there is such a user, else "nobody"
  Mode mode{};
  Admission admission{};
  cache::Limits limits{};
  std::chrono::milliseconds rollback_window{};
  std::chrono::milliseconds confirm_after{};  ///< 0: never
  bool require_digest{};
  std::string deployment;
  std::chrono::milliseconds flip_wait{};  ///< 0: not at all
  fetch::Verify verify{};
  vfs::CheckPolicy verify_open{};
  bool passthrough{};
  unsigned connections{};
  unsigned connections_per_blob{};
  std::uint64_t part_size{};        ///< bytes
  std::uint64_t fill_bandwidth{};   ///< bytes per second; 0: no limit
  std::uint64_t write_bandwidth{};  ///< likewise
  bool yield_to_readers{};
  std::chrono::milliseconds deadline{};
  std::chrono::milliseconds stall_timeout{};
  std::uint64_t read_ahead{};  ///< bytes
  unsigned hash_threads{};
  unsigned fuse_threads{};
  bool allow_network_store{};
  std::uint64_t event_log_size{};  ///< bytes
  LogLevel log_level{};
  std::filesystem::path ca_bundle;           ///< empty: the system's
  source::Credentials::Options credentials;  ///< their file; the environment is shown nowhere
  source::HubAccess hub;  ///< its token, if any, is the environment's: shown nowhere
  std::vector<ModelSetting> models;
  std::vector<cache::Tenant> tenants;

  /// Whether what is fetched goes into the store.
  [[nodiscard]] bool keeps() const noexcept { return mode == Mode::kProd; }
};

/// A setting as it came out, for `config check` and `status`.
struct EffectiveSetting {
  std::string name;
  std::string value;
  std::string origin;  ///< "flag --store", "environment WEIGHTFS_STORE", "file PATH", "default"
};

struct LoadedSettings {
  Settings settings;
  std::string file_text;  ///< what the configuration file had; empty where there is none
  std::vector<EffectiveSetting> effective;  ///< in the order of the table
};

/// Where settings come from, highest precedence first.
struct SettingSources {
  std::map<std::string, std::string> flags;  ///< by setting name, as text
  std::vector<std::string> model_flags;      ///< NAME=SOURCE each
  std::map<std::string, std::string> environment;
  /// The configuration file; nullopt means kDefaultConfig, which need not exist.
  std::optional<std::filesystem::path> config;
  std::optional<std::string> config_text;  ///< in place of what the file has now
  unsigned processors = 1;                 ///< what a number of threads of 0 is worked out from
};

inline constexpr std::string_view kDefaultConfig = "/etc/weightfs/config.json";
inline constexpr std::string_view kConfigVariable = "WEIGHTFS_CONFIG";

/// The file that load_settings reads, be it there or not.
[[nodiscard]] std::filesystem::path config_file(const SettingSources& sources);

/// Flag, else environment, else file, else default. Error(kInvalid) names where the bad value
/// stands and what would be right; kNotFound, kPermission for a configuration file that cannot be
/// read. The models of all places together are the models; of two with one name the higher place
/// wins.
[[nodiscard]] LoadedSettings load_settings(const SettingSources& sources);

/// One setting alone, for commands that need no more (the socket): the rest of the file is not
/// looked at beyond being JSON, and a default file that may not be read counts as absent.
[[nodiscard]] EffectiveSetting load_setting(std::string_view name, const SettingSources& sources);

}  // namespace weightfs::cli
