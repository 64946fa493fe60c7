// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fake_source.hpp"
#include "fetch/fetcher.hpp"
#include "gate.hpp"
#include "store/store.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace weightfs::fetch {

inline constexpr std::uint64_t kKiB = 1 << 10;
inline constexpr std::uint64_t kMiB = 1 << 20;

/// How long a test waits for what must happen before it fails.
inline constexpr std::chrono::seconds kPatience{20};

/// Waits until `condition` holds, for as long as the tests' patience lasts.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

/// Time that passes by itself, and faster where the test says so.
class TestClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override {
    return std::chrono::steady_clock::now() + std::chrono::milliseconds(ahead_.load());
  }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override { return {}; }
  void advance(std::chrono::milliseconds by) { ahead_ += by.count(); }

 private:
  std::atomic<std::int64_t> ahead_{0};
};

/// Remembers what it is told.
class RecordingObserver final : public FillObserver {
 public:
  void on_complete(const Target& target, const store::Blob& blob) override;
  [[nodiscard]] std::optional<Digest> learned(const Target& target) const override;
  void on_proven(const Target& target) override;
  void on_shown(const Target& target, Place place) override;
  [[nodiscard]] std::optional<Place> shown(const Target& target) const override;
  void on_disowned(const Target& target) override;
  void on_failed(const Target& target, const Error& error) override;
  void on_loader(const Target& target) override;
  bool wanted(const Target&) override { return somebody_may_come; }

  [[nodiscard]] std::vector<std::string> completed() const;
  [[nodiscard]] std::vector<std::string> disowned() const;
  [[nodiscard]] std::vector<Errc> failed() const;
  [[nodiscard]] unsigned loaders() const;
  [[nodiscard]] std::optional<Digest> last_digest() const;
  /// What wanted() says.
  std::atomic<bool> somebody_may_come{true};
  /// Called within on_complete, once each.
  std::function<void(const Target&)> when_complete;
  /// Called within on_failed, once each.
  std::function<void(const Target&)> then;
  /// Called within on_disowned, once each.
  std::function<void(const Target&)> when_disowned;

 private:
  struct State {
    std::vector<std::string> completed;
    std::vector<std::string> disowned;
    std::unordered_map<store::PartialKey, Place> shown;
    std::unordered_map<store::PartialKey, Digest> learned;
    std::vector<Errc> failed;
    unsigned loaders = 0;
    std::optional<Digest> last_digest;
  };
  Synchronized<State> state_;
};

/// A read under way.
class PendingRead {
 public:
  PendingRead(const FillPtr& fill, std::uint64_t offset, std::uint64_t size);

  [[nodiscard]] ReadId id() const noexcept { return id_; }
  [[nodiscard]] bool done() const;
  /// The bytes; throws the Error that ended it, or kTimedOut when patience is over.
  [[nodiscard]] std::string wait();
  /// The code of the error that must end it.
  [[nodiscard]] Errc failure();

 private:
  struct Outcome {
    std::string bytes;
    std::optional<Error> error;
  };
  std::shared_ptr<std::promise<Outcome>> promise_ = std::make_shared<std::promise<Outcome>>();
  std::future<Outcome> outcome_ = promise_->get_future();
  ReadId id_;
};

/// A store in a directory of its own, a source, and a fetcher between them that can be started
/// anew.
class FetchFixture {
 public:
  explicit FetchFixture(const std::filesystem::path& at = {});
  ~FetchFixture();

  void start();
  void stop() { fetcher_.reset(); }
  [[nodiscard]] Fetcher& fetcher() { return *fetcher_; }
  /// The only file of its snapshot, as the listing has it.
  [[nodiscard]] Target target(const snapshot::File& file) const;
  [[nodiscard]] Target target(const std::string& path, std::uint64_t size) const {
    return target(FakeSource::file(path, size));
  }
  [[nodiscard]] FillPtr fill(const std::string& path, std::uint64_t size) {
    return fetcher().fill(target(path, size));
  }
  [[nodiscard]] static std::string content(const Target& target, ByteRange range) {
    return FakeSource::content(target.file().path, range);
  }
  /// Reads, and compares every byte.
  [[nodiscard]] static bool reads_right(const FillPtr& fill, ByteRange range);

  std::filesystem::path directory;
  FetcherOptions options;
  /// For hooks of the source, which run until the fetcher is gone.
  Gate gate;
  Gate second_gate;
  std::shared_ptr<FakeSource> source = std::make_shared<FakeSource>();
  RecordingObserver observer;
  TestClock clock;
  std::unique_ptr<store::Store> store;

 private:
  bool own_directory_;
  std::unique_ptr<Fetcher> fetcher_;
};

}  // namespace weightfs::fetch
