// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/warmer.hpp"

#include "base/synchronized.hpp"
#include "base/thread.hpp"

#include <condition_variable>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weightfs::fetch {

namespace {

using JobPtr = std::shared_ptr<Synchronized<WarmJob>>;

/// Wakes the warmer's thread. Shared with the callbacks of fills, which may outlive the Warmer.
class Bell {
 public:
  void ring() {
    rung_.with([](bool& rung) { rung = true; });
    wake_.notify_all();
  }

  /// False if it was the stop request that ended the wait.
  bool wait(const std::stop_token& stop) {
    auto rung = rung_.lock();
    if (!rung.wait(wake_, stop, [&] { return *rung; })) return false;
    *rung = false;
    return !stop.stop_requested();
  }

 private:
  Synchronized<bool> rung_;
  std::condition_variable_any wake_;
};

}  // namespace

class Warmer::State {
 public:
  State(Fetcher& fetcher, store::Store& store, unsigned files_at_once, Log log)
      : fetcher_(fetcher),
        store_(store),
        files_at_once_(files_at_once),
        log_(std::move(log)),
        thread_(start_thread("warmer", [this](std::stop_token stop) {
          while (bell_->wait(stop)) {
            for (const JobPtr& job : jobs()) advance(*job, stop);
          }
        })) {}

  void start(snapshot::SnapshotPtr snapshot, source::SourcePtr source, Want want) {
    jobs_.with([&](Jobs& jobs) {
      JobPtr& job = jobs[snapshot->key()];
      const bool joined = job && job->with([&](WarmJob& running) {
        if (!running.running()) return false;
        running.raise(want);
        return true;
      });
      if (joined) return;
      job = std::make_shared<Synchronized<WarmJob>>(
          WarmJob(std::move(snapshot), std::move(source), files_at_once_, want));
    });
    bell_->ring();
  }

  void stop(const Digest& key) {
    const JobPtr job = find(key);
    if (!job) return;
    // Released here, without the lock.
    const std::vector<FillPtr> fills = job->with([](WarmJob& stopped) { return stopped.stop(); });
  }

  [[nodiscard]] std::optional<WarmProgress> progress(const Digest& key) const {
    const JobPtr job = find(key);
    if (!job) return std::nullopt;
    return job->with([](const WarmJob& one) { return one.progress(); });
  }

 private:
  using Jobs = std::unordered_map<Digest, JobPtr>;

  [[nodiscard]] JobPtr find(const Digest& key) const {
    return jobs_.with([&](const Jobs& jobs) {
      const auto found = jobs.find(key);
      return found == jobs.end() ? nullptr : found->second;
    });
  }

  [[nodiscard]] std::vector<JobPtr> jobs() const {
    return jobs_.with([](const Jobs& jobs) {
      std::vector<JobPtr> all;
      for (const auto& [key, job] : jobs) all.push_back(job);
      return all;
    });
  }

  void advance(Synchronized<WarmJob>& job, const std::stop_token& stop) {
    job.with([](WarmJob& one) { one.reap(); });
    while (!stop.stop_requested()) {
      const auto target = job.with([](WarmJob& one) { return one.next(); });
      if (!target) return;
      open(job, *target);
    }
  }

  void open(Synchronized<WarmJob>& job, const Target& target) {
    const std::optional<Digest>& sha256 = target.file().sha256;
    if (sha256 && store_.contains(*sha256)) {
      return job.with([&](WarmJob& one) { one.found(target); });
    }
    try {
      const FillPtr fill = fetcher_.fill(target);
      fill->want(job.with([&](WarmJob& one) {
        one.filling(fill);
        return one.want();
      }));
      fill->on_end([bell = bell_] { bell->ring(); });
    } catch (const Error& error) {
      log_.warning("{}: {}", target.file().path, error.what());
      job.with([&](WarmJob& one) { one.failed(target, error); });
    }
  }

  Fetcher& fetcher_;
  store::Store& store_;
  const unsigned files_at_once_;
  const Log log_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  Synchronized<Jobs> jobs_;
  std::jthread thread_;  // last: stops before what it uses goes
};

Warmer::Warmer(Fetcher& fetcher, store::Store& store, unsigned files_at_once, Log log)
    : state_(std::make_unique<State>(fetcher, store, files_at_once, log.named("warm"))) {
}

Warmer::~Warmer() = default;

void Warmer::start(snapshot::SnapshotPtr snapshot, source::SourcePtr source, Want want) {
  state_->start(std::move(snapshot), std::move(source), want);
}

void Warmer::stop(const Digest& snapshot_key) {
  state_->stop(snapshot_key);
}

std::optional<WarmProgress> Warmer::progress(const Digest& snapshot_key) const {
  return state_->progress(snapshot_key);
}

}  // namespace weightfs::fetch
