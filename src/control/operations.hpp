// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/events.hpp"
#include "weightfs/values.hpp"

#include <sys/types.h>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace weightfs::control {

/// What a long operation is given: when to stop (Error(kCancelled)), and where to say how far it
/// is.
struct Job {
  std::stop_token stop;
  std::function<void(const api::JobProgress&)> report = [](const api::JobProgress&) {};
};

/// Whether something is removed, or only said what would be.
enum class DryRun { kNo, kYes };
/// Whether the new revision is fetched before the name shows it.
enum class Staging { kWarm, kCold };
/// What a listing that lacks a file that loaders need is taken for.
enum class Missing { kRefused, kAllowed };
/// Whether the flip waits for who is loading through the name.
enum class Flip { kPatient, kNow };
struct UpdateHow {
  Staging staging = Staging::kWarm;
  Missing missing = Missing::kRefused;
  Flip flip = Flip::kPatient;
  std::string expect = {};  ///< the id of the snapshot that it must be; empty: whatever there is
};
/// What becomes of files that another model has as well.
enum class Shared { kKeep, kEvict };
enum class Unmount { kNow, kLazy };

/// What the control API can be asked, as calls: the seam between the routes and the daemon.
///
/// Thread-safe. Every failure is an Error; Error(kNotFound) for a name that is not in the catalog.
/// Those that take a Job may run for hours, the others within seconds.
class Operations {
 public:
  virtual ~Operations() = default;

  [[nodiscard]] virtual api::Status status() = 0;
  [[nodiscard]] virtual std::vector<api::FillStatus> fills() = 0;
  [[nodiscard]] virtual std::vector<api::Model> models() = 0;
  [[nodiscard]] virtual api::ModelDetail model(const std::string& name) = 0;
  [[nodiscard]] virtual api::Progress progress(const std::string& name) = 0;
  /// `path` is absolute and below the mount point, or relative to it.
  [[nodiscard]] virtual api::Why why(const std::string& path) = 0;
  /// Waits for as long as `query.wait_seconds` says, or until end_waiting().
  [[nodiscard]] virtual api::EventPage events(const api::EventQuery& query) = 0;
  /// From now on events() does not wait.
  virtual void end_waiting() noexcept = 0;

  /// Resolves and checks the source, and only then records the name.
  virtual api::Model add(const api::AddRequest& request, const Job& job) = 0;
  /// Resolves again; fetches what is new and flips the name in one step.
  virtual api::UpdateResult update(const std::string& name, const UpdateHow& how,
                                   const Job& job) = 0;
  /// As update, of the name, from another source, which is the model's from then on.
  virtual api::UpdateResult resource(const api::AddRequest& request, const Job& job) = 0;
  /// Re-hashes the blobs of one model, or of the whole store where `name` is empty.
  virtual api::VerifyResult verify(const std::string& name, const Job& job) = 0;

  /// Takes files below a directory of this machine that the models have, and the store lacks, into
  /// the store.
  virtual api::ImportResult import_files(const api::ImportRequest& request, const Job& job) = 0;

  virtual api::Freed remove(const std::string& name, DryRun dry_run) = 0;
  /// Frees what only this model has; with Shared::kEvict also what others have, but for pinned
  /// ones.
  virtual api::Freed evict(const std::string& name, Shared shared, DryRun dry_run) = 0;
  /// Takes old revisions from a model, or from all where `name` is empty, and what only they had
  /// from the store; but for the `keep` newest of each, and those that somebody needs.
  virtual api::Pruned prune(const std::string& name, std::uint64_t keep, DryRun dry_run) = 0;
  /// Starts fetching what is not there, or joins; progress() tells the rest.
  virtual api::Progress warm(const std::string& name) = 0;
  /// Pinning also warms: it is the decision to keep. One that is pinned already is pinned anew.
  virtual api::Model pin(const std::string& name, const api::PinRequest& request) = 0;
  virtual api::Model unpin(const std::string& name) = 0;
  /// What the name shows now is what it is rolled back to.
  virtual api::Model confirm(const std::string& name) = 0;
  /// Shows the last confirmed revision again, at once and without its source.
  virtual api::UpdateResult rollback(const std::string& name) = 0;
  /// Reads the settings again, and does what can be done without a restart: the models, and whose
  /// they are. Says what differed.
  virtual api::ConfigDiff reload() = 0;
  /// What reload() would find.
  [[nodiscard]] virtual api::ConfigDiff config_diff() = 0;
  /// `mode` is a word of cache::kModeWords; it holds until the mount ends.
  virtual api::ModeChange set_mode(const std::string& mode) = 0;

  [[nodiscard]] virtual std::vector<api::Lease> leases() = 0;
  [[nodiscard]] virtual api::Lease lease(const std::string& id) = 0;
  /// Takes it, or renews the one with this id. Refused, with the numbers, where it cannot fit;
  /// warms what is missing. `user` is whom the request is from, where that is known: a lease is
  /// renewed and removed by whoever took it, root, and the daemon's own user; Error(kPermission)
  /// for anybody else.
  virtual api::Lease put_lease(const std::string& id, const api::LeaseRequest& request,
                               std::optional<uid_t> user) = 0;
  virtual void remove_lease(const std::string& id, std::optional<uid_t> user) = 0;

  virtual void unmount(Unmount how) = 0;
};

}  // namespace weightfs::control
