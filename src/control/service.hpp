// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/synchronized.hpp"
#include "cache/cache.hpp"
#include "catalog/catalog.hpp"
#include "control/lease_events.hpp"
#include "control/lease_warmer.hpp"
#include "control/mount_view.hpp"
#include "control/operations.hpp"
#include "control/rate_table.hpp"
#include "fetch/fetcher.hpp"
#include "fetch/warmer.hpp"
#include "snapshot/pinned_reference.hpp"
#include "source/source_pool.hpp"
#include "store/store.hpp"
#include "telemetry/event_log.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace weightfs::control {

/// The operations of the control API on a running daemon: what `weightfs add`, `warm`, `evict` and
/// the others mean. Holds no state of its own but the rates of the fills, and how leases fare.
///
/// Thread-safe; no lock is held across a call into another layer. Has one thread ("rates"), and a
/// LeaseWarmer's.
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
    const Clock& clock;
    std::string admission = "always";  ///< likewise
    bool require_digest = false;       ///< no name shows what may change
    /// For how long a flip waits for who is loading through the name.
    std::chrono::milliseconds flip_wait{0};
    telemetry::EventLog* event_log = nullptr;
    unsigned hash_threads = 2;  ///< so many files at once are hashed to find out what they are
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

  // service_revisions.cpp
  api::UpdateResult update(const std::string& name, const UpdateHow& how, const Job& job) override;
  api::UpdateResult resource(const api::AddRequest& request, const Job& job) override;
  api::Model confirm(const std::string& name) override;
  api::UpdateResult rollback(const std::string& name) override;

  // service_prune.cpp
  api::Pruned prune(const std::string& name, std::uint64_t keep, DryRun dry_run) override;

  // service_storage.cpp
  api::VerifyResult verify(const std::string& name, const Job& job) override;
  api::Freed remove(const std::string& name, DryRun dry_run) override;
  api::Freed evict(const std::string& name, Shared shared, DryRun dry_run) override;
  api::Progress warm(const std::string& name) override;
  api::Model pin(const std::string& name, const api::PinRequest& request) override;
  api::Model unpin(const std::string& name) override;
  void unmount(Unmount how) override { parts_.mount.unmount(how); }

  // service_leases.cpp
  std::vector<api::Lease> leases() override;
  api::Lease lease(const std::string& id) override;
  api::Lease put_lease(const std::string& id, const api::LeaseRequest& request,
                       std::optional<uid_t> user) override;
  void remove_lease(const std::string& id, std::optional<uid_t> user) override;
  // service_events.cpp
  api::EventPage events(const api::EventQuery& query) override;
  void end_waiting() noexcept override;

  // service_import.cpp
  api::ImportResult import_files(const api::ImportRequest& request, const Job& job) override;

  // service_why.cpp
  api::Why why(const std::string& path) override;

 private:
  using Snapshots = std::vector<snapshot::SnapshotPtr>;
  enum class Scope { kCurrent, kAllRevisions };

  [[nodiscard]] catalog::Model require(const std::string& name) const;
  [[nodiscard]] snapshot::SnapshotPtr current(const catalog::Model& model) const;
  [[nodiscard]] Snapshots snapshots_of(const catalog::Model& model, Scope scope) const;
  [[nodiscard]] api::Model summary(const catalog::Model& model) const;
  [[nodiscard]] std::vector<api::Revision> known_revisions(const catalog::Model& model) const;
  [[nodiscard]] std::string rollback_of(const catalog::Model& model) const;
  [[nodiscard]] api::Model summary_of(const std::string& name) const;
  void require_store(const std::string& otherwise) const;
  [[nodiscard]] std::int64_t now() const;  ///< seconds since 1970
  [[nodiscard]] catalog::Pin read_pin(const api::PinRequest& request) const;
  /// Of a model as it is now, and of what was done to it.
  void tell(telemetry::EventKind kind, const catalog::Model& model, std::string reason = {}) const;
  void tell_freed(telemetry::EventKind kind, const catalog::Model& model, std::uint64_t bytes,
                  std::string reason) const;
  void tell_verified(const api::VerifyResult& result, const std::string& name) const;
  [[nodiscard]] telemetry::Event about_content(const std::string& sha256,
                                               const std::string& name) const;
  [[nodiscard]] api::EventsStatus events_status() const;
  void put(telemetry::Event event) const;
  [[nodiscard]] bool keeps() const {
    return parts_.fetcher.keep() == fetch::Keep::kStore && parts_.store.writable();
  }

  [[nodiscard]] snapshot::SnapshotPtr resolve(const source::SourcePtr& source,
                                              const Job& job) const;
  void check_complete(const snapshot::SnapshotPtr& snapshot, const source::SourcePtr& source,
                      const Job& job) const;
  [[nodiscard]] std::optional<std::string> missing_file(const snapshot::SnapshotPtr& snapshot,
                                                        const source::SourcePtr& source,
                                                        const Job& job) const;
  /// What a person named, and nothing else will do.
  struct Wanted {
    std::optional<Digest> revision = {};  ///< an id or a key
    std::optional<Digest> id = {};
  };
  [[nodiscard]] static std::optional<Digest> expected_id(const std::string& text);
  class Candidate {
   public:
    Candidate(catalog::Catalog& catalog, const snapshot::SnapshotPtr& snapshot,
              const std::string& name);
    Candidate(const Candidate&) = delete;
    Candidate& operator=(const Candidate&) = delete;
    ~Candidate();

   private:
    catalog::Catalog& catalog_;
    const Digest key_;
  };
  void require_immutable(const snapshot::PinnedReference& reference) const;
  [[nodiscard]] bool is_wanted(const snapshot::Snapshot& snapshot, const Wanted& wanted) const;
  void check_identity(const snapshot::SnapshotPtr& found, const source::SourcePtr& source,
                      const Wanted& wanted, const Job& job);
  void discard(const snapshot::SnapshotPtr& snapshot);
  [[nodiscard]] std::string flip(const std::string& name, const snapshot::SnapshotPtr& to, Flip how,
                                 const Job& job);
  void fetch_all(const snapshot::SnapshotPtr& snapshot, const source::SourcePtr& source,
                 const Job& job) const;

  [[nodiscard]] std::string reason_to_keep(const Digest& key, const std::set<Digest>& confirmed,
                                           const std::set<Digest>& shown) const;
  [[nodiscard]] static std::set<Digest> digests_of(const Snapshots& snapshots);
  [[nodiscard]] api::Freed release(const Snapshots& snapshots, const std::set<Digest>& kept,
                                   DryRun dry_run);
  void discard_partials(const Snapshots& snapshots, const Snapshots& kept);
  bool discard_partial(const Digest& key, const snapshot::File& file);
  [[nodiscard]] std::vector<std::string> files_with(const Digest& digest) const;

  [[nodiscard]] snapshot::SnapshotPtr snapshot_named(const std::string& text) const;
  [[nodiscard]] api::Lease describe(const catalog::Lease& lease) const;
  void refuse_leased(const catalog::Model& model, const Snapshots& snapshots) const;
  [[nodiscard]] Snapshots leased() const;

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

  [[nodiscard]] Snapshots importable(const std::vector<std::string>& names) const;
  class Spared;

  struct Reserving {};
  /// One pin or lease at a time finds out whether it fits, and is taken: outermost, before all.
  Synchronized<Reserving> reserving_;
  const Parts parts_;
  const Clock::TimePoint started_;
  Synchronized<RateTable> rates_;
  std::jthread sampler_;
  LeaseEvents lease_events_;
  LeaseWarmer lease_warmer_;
};

}  // namespace weightfs::control
