// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "cli/settings.hpp"
#include "store/store.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace weightfs::cli {

/// The store of a daemon. Where a daemon takes over a mount whose store it cannot open, because the
/// disk has failed or was made read-only, readers wait already, and are not to wait for a person:
/// an empty store in a temporary directory takes its place, nothing is kept, and reads stream from
/// their sources until a daemon is started that can open the store again. That directory goes with
/// the object, or, where the daemon was killed, with the start of the next one.
class NodeStore {
 public:
  enum class Mount { kNew, kTakenOver };

  /// Error as of Store::open; of a disk that fails, where the mount is taken over, only if there is
  /// no room for temporary files either. `clock` must outlive it.
  NodeStore(const Settings& settings, Mount mount, const Clock& clock, const Log& log);
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;
  ~NodeStore();

  [[nodiscard]] store::Store& operator*() noexcept { return *store_; }
  [[nodiscard]] store::Store* operator->() noexcept { return store_.get(); }
  /// Whether it is the store of the settings.
  [[nodiscard]] bool keeps() const noexcept { return substitute_.empty(); }
  /// Why it is not.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

 private:
  std::filesystem::path substitute_;
  std::string error_;
  std::unique_ptr<store::Store> store_;
};

}  // namespace weightfs::cli
