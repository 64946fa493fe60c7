// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cache/governor.hpp"
#include "cache/mode.hpp"
#include "cache/open_snapshots.hpp"
#include "cache/shadow.hpp"
#include "cache/store_stock.hpp"
#include "fetch/room.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weightfs::cache {

struct CacheStatus {
  GovernorStatus governor;
  std::optional<ShadowCounts> shadow;  ///< in Mode::kShadow: none of it is true
};

/// The cache as the rest of the daemon sees it: told what is opened and fetched, it keeps, evicts
/// or only thinks of doing so, as the mode has it. In Mode::kOff it does nothing, and never touches
/// the store.
///
/// Thread-safe. What is given must outlive it.
class Cache final : public fetch::Room {
 public:
  struct Parts {
    store::Store& store;
    const catalog::Catalog& catalog;
    const Clock& clock;
    EvictionObserver& observer;
    std::vector<std::filesystem::path> store_directories;  ///< whether the store is open or not
    telemetry::Events events = {};
  };
  Cache(Parts parts, GovernorOptions options, Mode mode, Log log);

  [[nodiscard]] Mode mode() const { return mode_; }
  /// What is open, and what the store has, stays as it is. Leaving kShadow forgets what it saw.
  void set_mode(Mode mode);

  /// A consumer opens a file: before it is fetched, since it is this use that may prove the
  /// snapshot. closed() must follow some day. Cheap.
  void opened(const snapshot::SnapshotPtr& snapshot, std::size_t file_index,
              const std::string& consumer);
  /// Somebody had it open before this daemon was there.
  void adopted(const Digest& snapshot_key, std::uint32_t opens) {
    open_.opened(snapshot_key, opens);
  }
  void closed(const Digest& snapshot_key) { open_.closed(snapshot_key); }
  [[nodiscard]] bool is_open(const Digest& snapshot_key) const {
    return open_.contains(snapshot_key);
  }

  [[nodiscard]] bool claim(const fetch::Target& target, const std::function<void()>& take) override;
  void write_again(const fetch::Target& target, const std::function<void()>& write) override;
  void streamed(const fetch::Target& target) override;
  void given_back() noexcept override { stock_changed(); }

  /// As of Governor; in Mode::kOff they do nothing.
  void admit(const snapshot::SnapshotPtr& snapshot);
  void reserve(const std::vector<snapshot::SnapshotPtr>& snapshots);
  void stock_changed() noexcept;
  void keep_limits();
  void set_tenants(const std::vector<Tenant>& tenants);
  /// nullopt in Mode::kOff.
  [[nodiscard]] std::optional<CacheStatus> status();

 private:
  using ShadowPtr = std::shared_ptr<Shadow>;
  [[nodiscard]] ShadowPtr make_shadow() const;
  [[nodiscard]] ShadowPtr shadow() const {
    return shadow_.with([](const ShadowPtr& shadow) { return shadow; });
  }

  const Parts parts_;
  GovernorOptions options_;  ///< for shadows to come; changed by one thread at a time
  const Log log_;
  OpenSnapshots open_;
  StoreStock stock_;
  Governor governor_;
  std::atomic<Mode> mode_;
  Synchronized<ShadowPtr> shadow_;
};

}  // namespace weightfs::cache
