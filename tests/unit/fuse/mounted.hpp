// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "catalog/catalog.hpp"
#include "fetch/fetcher.hpp"
#include "fuse/notifier.hpp"
#include "fuse/open_modes.hpp"
#include "fuse/session.hpp"
#include "fuse/session_records.hpp"
#include "keeper/session_memory.hpp"
#include "net/http_client.hpp"
#include "source/source_pool.hpp"
#include "store/store.hpp"
#include "vfs/blob_checks.hpp"
#include "vfs/filesystem.hpp"
#include "vfs/fill_reactions.hpp"

#include "fake_kernel.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace weightfs::fuse::test {

/// Gives out backing ids as a kernel would, and remembers which are open.
class FakeBackings final : public BackingRegistry {
 public:
  std::int32_t open_backing(const Fd&) override {
    ++opened;
    ++open;
    return ++last;
  }
  void close_backing(std::int32_t) override { --open; }

  std::atomic<int> opened = 0;
  std::atomic<int> open = 0;
  std::atomic<std::int32_t> last = 0;
};

/// A directory that goes away with its object.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Runs ahead of the day.
class ShiftedClock final : public Clock {
 public:
  explicit ShiftedClock(std::chrono::seconds shift) : shift_(shift) {}
  [[nodiscard]] TimePoint now() const noexcept override { return clock_.now(); }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override {
    return clock_.wall() + shift_;
  }

 private:
  const SystemClock clock_;
  const std::chrono::seconds shift_;
};

/// Nothing is evicted in these tests but by hand.
class UnheardEvictions final : public cache::EvictionObserver {
 public:
  void blob_gone(const Digest&) override {}
  void bytes_discarded(const Digest&) override {}
};

/// One daemon, from the store to the FUSE session, on a socket in place of /dev/fuse. Making a
/// second one over the same directory, memory and kernel is a restart.
class Mounted {
 public:
  struct World {
    const std::filesystem::path& directory;
    keeper::SessionMemory& memory;
    FakeKernel& kernel;
    FakeBackings& backings;
    bool passthrough = true;
    std::string boot_id = "this boot";
    vfs::CheckPolicy checks = vfs::CheckPolicy::kBoot;
    /// Called before the daemon is ready, with the kernel's first requests in the queue.
    std::function<void()> before_ready;
    std::chrono::seconds clock_shift{};
  };

  explicit Mounted(const World& world);
  ~Mounted();

  /// Puts the tree at `source_directory` into the catalog under `name`.
  void add(const std::string& name, const std::filesystem::path& source_directory);
  void wait_until_ready();

  ShiftedClock clock;
  std::unique_ptr<store::Store> store;
  catalog::Catalog catalog;
  net::HttpClient http;
  source::SourcePool sources;
  SessionRecords records;
  Notifier notifier;
  vfs::Incarnations incarnations;
  vfs::LastErrors last_errors;
  vfs::FillReactions reactions;
  vfs::BlobChecks checks;
  UnheardEvictions evictions;
  cache::Cache cache;
  std::unique_ptr<fetch::Fetcher> fetcher;
  vfs::Filesystem filesystem;
  OpenModes modes;
  std::atomic<bool> ready = false;
  Session session;
};

}  // namespace weightfs::fuse::test
