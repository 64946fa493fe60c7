// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/warmer.hpp"

#include "base/synchronized.hpp"
#include "base/thread.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weightfs::fetch {

namespace {

using JobPtr = std::shared_ptr<Synchronized<WarmJob>>;

/// Jobs that are over, of which it is still known how they went.
constexpr std::size_t kMostFinished = 256;

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
            for (const auto& [key, job] : jobs()) {
              advance(*job, stop);
              if (!job->with([](const WarmJob& one) { return one.running(); })) finish(key, job);
            }
          }
        })) {}

  void start(snapshot::SnapshotPtr snapshot, source::SourcePtr source,
             const WarmJob::Purpose& purpose) {
    std::vector<FillPtr> under_way;  // told, and released, without the locks
    std::shared_ptr<RateLimiter> pace;
    state_.with([&](Jobs& jobs) {
      JobPtr& job = jobs.running[snapshot->key()];
      const bool joined = job && job->with([&](WarmJob& running) {
        if (!running.running()) return false;
        under_way = running.add(purpose);
        pace = running.pace();
        return true;
      });
      if (joined) return;
      jobs.forget(snapshot->key());
      job = std::make_shared<Synchronized<WarmJob>>(
          WarmJob(std::move(snapshot), std::move(source), files_at_once_, purpose));
    });
    for (const FillPtr& fill : under_way) {
      fill->precede(purpose.precedence);
      fill->set_pace(pace);
      fill->want(purpose.want);
    }
    bell_->ring();
  }

  void excuse(const Digest& key) {
    const JobPtr job = find(key);
    if (job && !job->with([](WarmJob& excused) { return excused.excuse(); })) stop(key);
  }

  void stop(const Digest& key) {
    const JobPtr job = find(key);
    if (!job) return;
    finish(key, job);
    // Released here, without the lock. Who has them from now on has set no pace.
    const std::vector<FillPtr> fills = job->with([](WarmJob& stopped) { return stopped.stop(); });
    for (const FillPtr& fill : fills) fill->set_pace(nullptr);
  }

  [[nodiscard]] std::optional<WarmProgress> progress(const Digest& key) const {
    const JobPtr job = find(key);
    if (job) return job->with([](const WarmJob& one) { return one.progress(); });
    return state_.with([&](const Jobs& jobs) -> std::optional<WarmProgress> {
      for (const auto& [finished, progress] : jobs.finished) {
        if (finished == key) return progress;
      }
      return std::nullopt;
    });
  }

 private:
  struct Jobs {
    std::unordered_map<Digest, JobPtr> running;
    std::deque<std::pair<Digest, WarmProgress>> finished;  ///< the oldest first

    void forget(const Digest& key) {
      std::erase_if(finished, [&](const auto& one) { return one.first == key; });
    }
  };

  [[nodiscard]] JobPtr find(const Digest& key) const {
    return state_.with([&](const Jobs& jobs) {
      const auto found = jobs.running.find(key);
      return found == jobs.running.end() ? nullptr : found->second;
    });
  }

  /// In the order in which they are to have what they need.
  [[nodiscard]] std::vector<std::pair<Digest, JobPtr>> jobs() const {
    struct Ranked {
      Want want;
      Precedence precedence;
      std::pair<Digest, JobPtr> job;
    };
    std::vector<Ranked> ranked;
    state_.with([&](const Jobs& jobs) {
      for (const auto& one : jobs.running) {
        one.second->with(
            [&](const WarmJob& job) { ranked.push_back({job.want(), job.precedence(), one}); });
      }
    });
    std::ranges::sort(ranked, [](const Ranked& a, const Ranked& b) {
      return a.want != b.want ? a.want > b.want : a.precedence < b.precedence;
    });
    std::vector<std::pair<Digest, JobPtr>> jobs;
    for (Ranked& one : ranked) jobs.push_back(std::move(one.job));
    return jobs;
  }

  /// Of a job that is over only its outcome is kept: it holds a snapshot and a source.
  void finish(const Digest& key, const JobPtr& job) {
    WarmProgress outcome = job->with([](const WarmJob& one) { return one.progress(); });
    outcome.running = false;
    state_.with([&](Jobs& jobs) {
      const auto found = jobs.running.find(key);
      if (found == jobs.running.end() || found->second != job) return;
      jobs.running.erase(found);
      jobs.finished.emplace_back(key, std::move(outcome));
      if (jobs.finished.size() > kMostFinished) jobs.finished.pop_front();
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
    try {
      if (there(target)) return job.with([&](WarmJob& one) { one.found(target); });
      const FillPtr fill = fetcher_.fill(target);
      const auto [want, precedence, pace] = job.with([&](WarmJob& one) {
        one.filling(fill);
        return std::tuple(one.want(), one.precedence(), one.pace());
      });
      fill->precede(precedence);
      fill->set_pace(pace);
      fill->want(want);
      fill->on_end([bell = bell_] { bell->ring(); });
    } catch (const Error& error) {
      fail(job, target, error);
    } catch (const std::exception& error) {
      fail(job, target, Error(Errc::kInternal, error.what()));
    }
  }

  [[nodiscard]] bool there(const Target& target) const {
    const std::optional<Digest>& sha256 = target.file().sha256;
    if (!sha256 || !store_.contains(*sha256)) return false;
    const auto blob = store_.find(*sha256);
    if (blob) check_size(target, blob->size);
    return blob.has_value();
  }

  void fail(Synchronized<WarmJob>& job, const Target& target, const Error& error) {
    log_.warning("{}: {}", target.file().path, error.what());
    job.with([&](WarmJob& one) { one.failed(target, error); });
  }

  Fetcher& fetcher_;
  store::Store& store_;
  const unsigned files_at_once_;
  const Log log_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  Synchronized<Jobs> state_;
  std::jthread thread_;  // last: stops before what it uses goes
};

Warmer::Warmer(Fetcher& fetcher, store::Store& store, unsigned files_at_once, Log log)
    : state_(std::make_unique<State>(fetcher, store, files_at_once, log.named("warm"))) {
}

Warmer::~Warmer() = default;

void Warmer::start(snapshot::SnapshotPtr snapshot, source::SourcePtr source, Want want,
                   const Precedence& precedence, std::shared_ptr<RateLimiter> pace) {
  state_->start(std::move(snapshot), std::move(source),
                {.want = want, .precedence = precedence, .pace = std::move(pace)});
}

void Warmer::excuse(const Digest& snapshot_key) {
  state_->excuse(snapshot_key);
}

void Warmer::stop(const Digest& snapshot_key) {
  state_->stop(snapshot_key);
}

std::optional<WarmProgress> Warmer::progress(const Digest& snapshot_key) const {
  return state_->progress(snapshot_key);
}

}  // namespace weightfs::fetch
