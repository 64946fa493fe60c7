// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cache/mode.hpp"
#include "control/operations.hpp"
#include "digest/digest.hpp"
#include "vfs/counters.hpp"
#include "vfs/places.hpp"
#include "weightfs/values.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weightfs::control {

struct MountInfo {
  std::string mountpoint;
  std::int64_t keeper_pid = 0;
  bool passthrough_active = false;
  std::string passthrough_reason;     ///< why not
  std::string configuration_mistake;  ///< as api::Status
};

/// Whether a flip waits for who is loading through the name.
enum class Loaders { kRespected, kIgnored };
struct FlipOutcome {
  bool flipped = false;
  std::string loader;  ///< a consumer that was loading; empty where none was
};

/// What the Service asks of the mount, and tells it. Thread-safe.
class MountView {
 public:
  virtual ~MountView() = default;

  [[nodiscard]] virtual vfs::Counters counters() = 0;
  [[nodiscard]] virtual MountInfo mount_info() = 0;
  /// What the configuration names and the catalog does not have.
  [[nodiscard]] virtual std::vector<api::MissingModel> missing_models() = 0;
  /// What a path leads to, relative to the mount point. nullopt: there is nothing.
  [[nodiscard]] virtual std::optional<vfs::Place> locate(const std::string& path) = 0;
  /// The sentence that ended the last fill of this content (fetch::Target::key or unlearned_key).
  [[nodiscard]] virtual std::optional<std::string> last_error(const Digest& content_key) = 0;

  /// The blob is no longer in the store.
  virtual void blob_gone(const Digest& digest) = 0;
  /// The blob was not what its name says, and is no longer in the store: whoever opens one of its
  /// files from now on must not meet what was read of it.
  virtual void blob_damaged(const Digest& digest) = 0;
  /// What was fetched of this content (fetch::Target::key) is about to be thrown away without a
  /// verdict: who opens its file from now on must not meet what was read of it. Before it is thrown
  /// away.
  virtual void bytes_discarded(const Digest& content_key) = 0;
  /// As Operations::reload and config_diff.
  virtual api::ConfigDiff reload() = 0;
  [[nodiscard]] virtual api::ConfigDiff config_diff() = 0;
  /// Until the mount ends, over restarts of the daemon. Error, and nothing is changed, where the
  /// store cannot be opened for kProd.
  virtual void set_mode(cache::Mode mode) = 0;
  /// Runs `flip`, which moves `name` away from the revision `from`, unless a consumer is loading
  /// that through the name and is respected. None begins to meanwhile.
  virtual FlipOutcome flip(const std::string& name, const Digest& from, Loaders loaders,
                           const std::function<void()>& flip) = 0;
  /// Error(kBusy) while something is open, unless `how` is kLazy.
  virtual void unmount(Unmount how) = 0;
};

}  // namespace weightfs::control
