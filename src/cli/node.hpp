// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "cache/cache.hpp"
#include "cache/store_probe.hpp"
#include "cache/upkeep.hpp"
#include "catalog/catalog.hpp"
#include "cli/model_reconciler.hpp"
#include "cli/settings.hpp"
#include "control/router.hpp"
#include "control/server.hpp"
#include "control/service.hpp"
#include "fetch/fetcher.hpp"
#include "fetch/warmer.hpp"
#include "fuse/keeper_backings.hpp"
#include "fuse/notifier.hpp"
#include "fuse/open_modes.hpp"
#include "fuse/session.hpp"
#include "fuse/session_records.hpp"
#include "keeper/keeper_client.hpp"
#include "keeper/session_memory.hpp"
#include "net/http_client.hpp"
#include "source/source_pool.hpp"
#include "store/store.hpp"
#include "telemetry/event_log.hpp"
#include "vfs/blob_checks.hpp"
#include "vfs/filesystem.hpp"
#include "vfs/fill_reactions.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace weightfs::cli {

/// One daemon: every layer, made from the settings and wired together, lowest first. Has no logic
/// of its own beyond that and the order of start and end.
///
/// End: the FUSE session stops answering first, so that what is cancelled below it stays with the
/// kernel for the next daemon; then the control server, the fills, and the rest.
class Node final : public control::MountView, private cache::EvictionObserver {
 public:
  struct Sockets {
    keeper::KeeperClient keeper;  ///< has said hello
    control::ListenSocket control;
  };
  struct Configuration {
    LoadedSettings loaded;
    std::string mistake;  ///< in the file, which is why `loaded` is what it had before; else empty
    /// Reads them again, on any thread. Throws Error.
    std::function<LoadedSettings()> load;
  };
  /// Error: what Store::open_volumes and Catalog say of a configuration that cannot work.
  Node(Configuration configuration, Sockets sockets, keeper::Session session, const Log& log);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() override;

  /// Reads the settings again whenever `reload_descriptor` (reload_signal()) says so. Serves until
  /// `stop_descriptor` is readable, the mount is gone, or the keeper is; or until it
  /// cannot go on, while the mount waits for another daemon.
  enum class End { kStopped, kUnmounted, kLost };
  [[nodiscard]] End run(int stop_descriptor, int reload_descriptor);

  // control::MountView
  [[nodiscard]] vfs::Counters counters() override { return filesystem_.counters(); }
  void blob_gone(const Digest& digest) override { filesystem_.blob_gone(digest); }
  void blob_damaged(const Digest& digest) override { filesystem_.blob_damaged(digest); }
  void bytes_discarded(const Digest& content_key) override {
    filesystem_.bytes_discarded(content_key);
  }
  [[nodiscard]] control::MountInfo mount_info() override;
  [[nodiscard]] std::vector<api::MissingModel> missing_models() override;
  [[nodiscard]] std::optional<vfs::Place> locate(const std::string& path) override {
    return filesystem_.walk(path);
  }
  [[nodiscard]] std::optional<std::string> last_error(const Digest& content_key) override {
    return last_errors_.find(content_key);
  }
  api::ConfigDiff reload() override;
  [[nodiscard]] api::ConfigDiff config_diff() override;
  void set_mode(cache::Mode mode) override;
  control::FlipOutcome flip(const std::string& name, const Digest& from, control::Loaders loaders,
                            const std::function<void()>& flip) override;
  void unmount(control::Unmount how) override;

 private:
  [[nodiscard]] std::vector<ModelSetting> models_of(const Settings& settings) const;
  struct AtRunTime {
    std::vector<cache::Tenant> tenants;
    std::vector<EffectiveSetting> effective;
    std::string mistake;  ///< in the configuration file
  };
  [[nodiscard]] api::ConfigDiff difference(const LoadedSettings& wanted,
                                           const AtRunTime& now) const;
  void remember(const LoadedSettings& loaded) noexcept;
  void take_over(const LoadedSettings& wanted, AtRunTime& now);
  [[nodiscard]] api::ConfigDiff apply_settings();
  void reload_quietly() noexcept;
  void start(control::ListenSocket control, const Log& log);
  void close_lost_backings();
  void discard_orphans();
  void look_at_credentials();
  void warn_of_excess();
  void on_ready();
  void probe_passthrough();
  void volume_returned();
  void shut_down() noexcept;

  const Configuration configuration_;
  const Settings& settings_;
  const Log log_;
  const SystemClock clock_;
  std::atomic<bool> ready_ = false;  ///< the kernel has answered
  Synchronized<std::string> excess_told_;
  keeper::KeeperClient keeper_;
  keeper::Session session_handle_;
  keeper::SessionMemory memory_;
  store::Store store_;
  catalog::Catalog catalog_;
  telemetry::EventLog events_;  ///< after the lock of the state directory, before all who tell it
  net::HttpClient http_;
  source::Credentials credentials_;
  source::SourcePool sources_;
  fuse::SessionRecords records_;
  fuse::Notifier notifier_;
  vfs::Incarnations incarnations_;
  vfs::LastErrors last_errors_;
  vfs::FillReactions reactions_;
  vfs::BlobChecks checks_;
  std::unique_ptr<cache::Cache> cache_;
  std::unique_ptr<fetch::Fetcher> fetcher_;
  std::unique_ptr<fetch::Warmer> warmer_;
  vfs::Filesystem filesystem_;
  fuse::KeeperBackings backings_;
  fuse::OpenModes modes_;
  fuse::Session session_;
  std::unique_ptr<cache::Upkeep> upkeep_;
  std::unique_ptr<cache::StoreProbe> store_probe_;
  std::unique_ptr<control::Service> service_;
  std::unique_ptr<control::Router> router_;
  std::unique_ptr<control::Server> server_;
  std::unique_ptr<ModelReconciler> models_;
  Synchronized<AtRunTime> at_run_time_;  ///< one change at a time, of the mode or the settings
};

}  // namespace weightfs::cli
