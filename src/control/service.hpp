// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/synchronized.hpp"
#include "cache/cache.hpp"
#include "catalog/catalog.hpp"
#include "control/mount_view.hpp"
#include "control/operations.hpp"
#include "control/rate_table.hpp"
#include "fetch/fetcher.hpp"
#include "fetch/warmer.hpp"
#include "source/source_pool.hpp"
#include "store/store.hpp"
#include "telemetry/event_log.hpp"

#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace weightfs::control {

/// The operations of the control API on a running daemon: what `weightfs add`, `warm`, `evict` and
/// the others mean. Holds no state of its own but the rates of the fills.
///
/// Thread-safe; no lock is held across a call into another layer. Has one thread ("rates").
/// Everything in Parts must outlive it.
class Service final : public Operations {
 public:
  struct Parts {
    catalog::Catalog& catalog;
    store::Store& store;
    cache::Cache& cache;
    fetch::Fetcher& fetcher;
    fetch::Warmer& warmer;
    source::SourcePool& sources;
    MountView& mount;
    std::string admission = "always";  ///< likewise
    telemetry::EventLog* event_log = nullptr;
  };

  explicit Service(Parts parts);

  // service_status.cpp
  api::ModeChange set_mode(const std::string& mode) override;
  api::ConfigDiff reload() override { return parts_.mount.reload(); }
  api::ConfigDiff config_diff() override { return parts_.mount.config_diff(); }
  api::Status status() override;
  std::vector<api::FillStatus> fills() override;
  api::Progress progress(const std::string& name) override;

  // service_models.cpp
  std::vector<api::Model> models() override;
  api::ModelDetail model(const std::string& name) override;
  api::Model add(const api::AddRequest& request, const Job& job) override;
  api::UpdateResult update(const std::string& name, Staging staging, const Job& job) override;
  api::UpdateResult resource(const std::string& name, const std::string& source,
                             const Job& job) override;
  api::Model confirm(const std::string& name) override;
  api::UpdateResult rollback(const std::string& name) override;

  // service_storage.cpp
  api::VerifyResult verify(const std::string& name, const Job& job) override;
  api::Freed remove(const std::string& name, DryRun dry_run) override;
  api::Freed evict(const std::string& name, Shared shared, DryRun dry_run) override;
  api::Progress warm(const std::string& name) override;
  api::Model pin(const std::string& name, const std::string& reason) override;
  api::Model unpin(const std::string& name) override;
  void unmount(Unmount how) override { parts_.mount.unmount(how); }

  // service_events.cpp
  api::EventPage events(const api::EventQuery& query) override;
  void end_waiting() noexcept override;

  // service_why.cpp
  api::Why why(const std::string& path) override;

 private:
  using Snapshots = std::vector<snapshot::SnapshotPtr>;
  enum class Scope { kCurrent, kAllRevisions };

  [[nodiscard]] catalog::Model require(const std::string& name) const;
  [[nodiscard]] snapshot::SnapshotPtr current(const catalog::Model& model) const;
  [[nodiscard]] Snapshots snapshots_of(const catalog::Model& model, Scope scope) const;
  [[nodiscard]] api::Model summary(const catalog::Model& model) const;
  [[nodiscard]] std::string rollback_of(const catalog::Model& model) const;
  [[nodiscard]] api::Model summary_of(const std::string& name) const;
  void require_store(const std::string& otherwise) const;
  /// Of a model as it is now, and of what was done to it.
  void tell(telemetry::EventKind kind, const catalog::Model& model, std::string reason = {}) const;
  void tell_freed(telemetry::EventKind kind, const catalog::Model& model, std::uint64_t bytes,
                  std::string reason) const;
  void tell_verified(const api::VerifyResult& result, const std::string& name) const;
  [[nodiscard]] api::EventsStatus events_status() const;
  void put(telemetry::Event event) const;
  [[nodiscard]] bool keeps() const {
    return parts_.fetcher.keep() == fetch::Keep::kStore && parts_.store.writable();
  }

  [[nodiscard]] snapshot::SnapshotPtr resolve(const source::SourcePtr& source,
                                              const Job& job) const;
  void check_complete(const snapshot::SnapshotPtr& snapshot, const source::SourcePtr& source,
                      const Job& job) const;
  void fetch_all(const snapshot::SnapshotPtr& snapshot, const source::SourcePtr& source,
                 const Job& job) const;

  [[nodiscard]] static std::set<Digest> digests_of(const Snapshots& snapshots);
  [[nodiscard]] api::Freed release(const Snapshots& snapshots, const std::set<Digest>& kept,
                                   DryRun dry_run);
  void discard_partials(const Snapshots& snapshots, const Snapshots& kept);
  bool discard_partial(const Digest& key, const snapshot::File& file);
  [[nodiscard]] std::vector<std::string> files_with(const Digest& digest) const;

  void describe(api::Why& why, const vfs::Place& view) const;
  [[nodiscard]] bool is_current(const std::string& name, const snapshot::Snapshot& snapshot) const;
  void explain_content(api::Why& why, bool complete, const snapshot::Snapshot& shown) const;
  void explain_file(api::Why& why, const vfs::Place& place) const;
  void explain_directory(api::Why& why, const vfs::Place& place);
  void explain_absent(api::Why& why, std::string_view inside) const;
  [[nodiscard]] std::string name_of(const snapshot::Snapshot& snapshot) const;
  [[nodiscard]] std::vector<std::string> others_with(const fetch::Target& target,
                                                     const std::string& name) const;
  [[nodiscard]] std::string fetch_now(const std::string& name,
                                      const snapshot::Snapshot& shown) const;
  [[nodiscard]] api::FillStatus fill_status(const fetch::Fill& fill) const;
  void sample_rates(std::stop_token stop);

  const Parts parts_;
  const Clock::TimePoint started_;
  Synchronized<RateTable> rates_;
  std::jthread sampler_;
};

}  // namespace weightfs::control
