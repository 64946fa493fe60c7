// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/file.hpp"
#include "base/synchronized.hpp"
#include "catalog/catalog.hpp"
#include "control/service.hpp"
#include "fetch/fetcher.hpp"
#include "fetch/warmer.hpp"
#include "net/http_client.hpp"
#include "source/source_pool.hpp"
#include "store/store.hpp"
#include "temporary_directory.hpp"
#include "vfs/session_log.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace weightfs::tests {

class NoSessionLog final : public vfs::SessionLog {
 public:
  void append(std::string_view) override {}
  [[nodiscard]] std::vector<std::string> records() const override { return {}; }
};

/// A mount that only remembers what it was told, and shows the catalog as a real one does.
class FakeMount final : public control::MountView {
 public:
  explicit FakeMount(const catalog::Catalog& catalog) : places_(catalog, log_) {}

  vfs::Counters counters() override { return {.opens = 3, .hits = 2}; }
  control::MountInfo mount_info() override {
    return {.mountpoint = "/models", .keeper_pid = 42, .passthrough_reason = "a fake"};
  }
  std::vector<api::MissingModel> missing_models() override {
    return {{.name = "org/missing", .error = {"unavailable", "no answer"}, .retrying = true}};
  }
  std::optional<vfs::Place> locate(const std::string& path) override { return places_.walk(path); }
  std::optional<std::string> last_error(const Digest&) override { return std::nullopt; }
  void blob_gone(const Digest& digest) override { record("gone " + digest.short_hex()); }
  void blob_damaged(const Digest& digest) override { record("damaged " + digest.short_hex()); }
  void bytes_discarded(const Digest& key) override { record("discarded " + key.short_hex()); }
  api::ConfigDiff reload() override { return {}; }
  api::ConfigDiff config_diff() override { return {}; }
  void set_mode(cache::Mode mode) override { record(fmt::format("mode {}", cache::name(mode))); }
  /// Says that somebody loads, so many times.
  void load(int times) { loading_ = times; }
  control::FlipOutcome flip(const std::string&, const Digest&, control::Loaders loaders,
                            const std::function<void()>& flip) override {
    const std::string loader = loading_ > 0 ? "a pod" : "";
    if (loading_ > 0) --loading_;
    if (!loader.empty() && loaders == control::Loaders::kRespected) {
      return {.flipped = false, .loader = loader};
    }
    flip();
    return {.flipped = true, .loader = loader};
  }
  void unmount(control::Unmount) override { record("unmount"); }

  std::vector<std::string> told() {
    return told_.with([](auto& told) { return std::exchange(told, {}); });
  }

 private:
  void record(std::string what) {
    told_.with([&](auto& told) { told.push_back(std::move(what)); });
  }

  std::atomic<int> loading_ = 0;
  NoSessionLog log_;
  vfs::Places places_;
  Synchronized<std::vector<std::string>> told_;
};

/// Nothing is evicted in these tests but by hand.
class UnheardEvictions final : public cache::EvictionObserver {
 public:
  void blob_gone(const Digest&) override {}
  void bytes_discarded(const Digest&) override {}
};

/// What the daemon does when a fill is over, as far as the service depends on it.
class LearningObserver final : public fetch::FillObserver {
 public:
  explicit LearningObserver(catalog::Catalog& catalog) : catalog_(catalog) {}
  void on_complete(const fetch::Target& target, const store::Blob& blob) override {
    if (!target.file().sha256) {
      catalog_.learn(target.snapshot->key(), target.file_index, blob.digest);
    }
  }
  [[nodiscard]] std::optional<Digest> learned(const fetch::Target&) const override {
    return std::nullopt;
  }
  void on_proven(const fetch::Target&) override {}
  void on_shown(const fetch::Target&, fetch::Place) override {}
  [[nodiscard]] std::optional<fetch::Place> shown(const fetch::Target&) const override {
    return std::nullopt;
  }
  void on_disowned(const fetch::Target&) override {}
  void on_failed(const fetch::Target&, const Error&) override {}
  void on_loader(const fetch::Target&) override {}
  bool wanted(const fetch::Target&) override { return true; }

 private:
  catalog::Catalog& catalog_;
};

/// The service on real layers, in a directory of its own, with sources under it.
class RunningService {
 public:
  enum class Disk { kGood, kUnopenable };
  explicit RunningService(fetch::Keep keep = fetch::Keep::kStore, Disk disk = Disk::kGood,
                          bool require_digest = false)
      : require_digest_(require_digest),
        store_(open_store(disk)),
        fetcher_(*store_, clock_, observer_, {.keep = keep}, Log::silent()) {}

  /// Writes a file of a source and returns the source's reference.
  std::string source(const std::string& model, const std::string& path,
                     const std::string& content) const {
    const auto folder = directory_.path() / "sources" / model;
    std::filesystem::create_directories((folder / path).parent_path());
    write_file_durably(folder / path, content);
    return "file://" + folder.string();
  }
  [[nodiscard]] std::filesystem::path blob(const std::string& content) const {
    const std::string hex = Digest::of(content).hex();
    return directory_.path() / "store" / "blobs" / "sha256" / hex.substr(0, 2) / hex;
  }
  /// The fill of a file of a model, which a reader shares.
  fetch::FillPtr open(const std::string& name, const std::string& path) {
    const auto snapshot = catalog.snapshot(catalog.find(name)->current);
    return fetcher_.fill({.snapshot = snapshot,
                          .file_index = snapshot->index_of(path).value(),
                          .source = sources_.get(snapshot->source())});
  }
  [[nodiscard]] bool has_partial_blobs() const {
    return !std::filesystem::is_empty(directory_.path() / "store" / "partial");
  }
  /// Warms and waits.
  api::Progress fetch(const std::string& name) {
    api::Progress progress = service.warm(name);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (progress.running && !progress.complete && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
      progress = service.progress(name);
    }
    return progress;
  }

 private:
  const bool require_digest_;
  TemporaryDirectory directory_;
  SystemClock clock_;
  std::unique_ptr<store::Store> store_;

  [[nodiscard]] std::unique_ptr<store::Store> open_store(Disk disk) const {
    auto store = std::make_unique<store::Store>(clock_, Log::silent());
    const bool good = disk == Disk::kGood;
    // Nobody can make a directory in there.
    store->open_volumes(
        {.directories = {good ? directory_.path() / "store" : "/sys/weightfs"}, .boot_id = "boot"},
        store::Unopenable::kTryLater);
    return store;
  }

 public:
  catalog::Catalog catalog{directory_.path() / "state", clock_, Log::silent()};
  FakeMount mount{catalog};

 private:
  net::HttpClient http_{net::HttpClientOptions{}};
  source::SourcePool sources_{http_};
  LearningObserver observer_{catalog};
  UnheardEvictions evictions_;
  cache::Cache cache_{{.store = *store_,
                       .catalog = catalog,
                       .clock = clock_,
                       .observer = evictions_,
                       .store_directories = {directory_.path() / "store"}},
                      {.use_log = directory_.path() / "state" / "uses"},
                      cache::Mode::kProd,
                      Log::silent()};
  fetch::Fetcher fetcher_;
  fetch::Warmer warmer_{fetcher_, *store_, 2, Log::silent()};

 public:
  telemetry::EventLog events{{.file_bytes = 0}, clock_, Log::silent()};
  control::Service service{{.catalog = catalog,
                            .store = *store_,
                            .cache = cache_,
                            .fetcher = fetcher_,
                            .warmer = warmer_,
                            .sources = sources_,
                            .mount = mount,
                            .clock = clock_,
                            .require_digest = require_digest_,
                            .flip_wait = std::chrono::minutes(1),
                            .event_log = &events}};
};

}  // namespace weightfs::tests
