// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/warm_job.hpp"

#include "fetch/natural_order.hpp"
#include "store/partial_blob.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weightfs::fetch {

namespace {

/// A small file is one request: many side by side hide each other's round trips.
constexpr unsigned kSmallPerLarge = 4;

bool small(const snapshot::File& file) noexcept {
  return file.size < store::kPartSize;
}

/// Trouble with one file, which says nothing about the others.
bool concerns_one_file(Errc code) noexcept {
  return code == Errc::kNotFound || code == Errc::kPermission || code == Errc::kChanged ||
         code == Errc::kCorrupt || code == Errc::kInvalid;
}

}  // namespace

std::vector<std::size_t> warm_order(const snapshot::Snapshot& snapshot) {
  const snapshot::FileList& files = snapshot.files();
  std::vector<std::size_t> order(files.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (small(files[a]) != small(files[b])) return small(files[a]);
    return natural_less(files[a].path, files[b].path);
  });
  return order;
}

WarmJob::WarmJob(snapshot::SnapshotPtr snapshot, source::SourcePtr source, unsigned files_at_once,
                 const Purpose& purpose)
    : snapshot_(std::move(snapshot)),
      source_(std::move(source)),
      files_at_once_(std::max(1U, files_at_once)),
      want_(purpose.want),
      precedence_(purpose.precedence),
      pace_(purpose.pace),
      asked_for_(!purpose.precedence.is_due()) {
  const std::vector<std::size_t> order = warm_order(*snapshot_);
  pending_.assign(order.begin(), order.end());
}

std::optional<Target> WarmJob::next() {
  if (pending_.empty()) return std::nullopt;
  const bool small_next = small(snapshot_->files()[pending_.front()]);
  const std::size_t room = small_next ? files_at_once_ * kSmallPerLarge : files_at_once_;
  if (opening_ + fills_.size() >= room) return std::nullopt;
  ++opening_;
  const std::size_t index = pending_.front();
  pending_.pop_front();
  return Target{.snapshot = snapshot_, .file_index = index, .source = source_};
}

void WarmJob::found(const Target& target) {
  --opening_;
  succeed(target);
}

void WarmJob::filling(FillPtr fill) {
  --opening_;
  if (!stopped_) fills_.push_back(std::move(fill));
}

void WarmJob::failed(const Target& target, const Error& error) {
  --opening_;
  fail(target, error);
}

void WarmJob::reap() {
  std::erase_if(fills_, [&](const FillPtr& fill) {
    const FillProgress progress = fill->progress();
    if (progress.state == FillState::kComplete) {
      succeed(fill->target());
    } else if (const auto error = fill->error()) {
      fail(fill->target(), *error);
    } else if (progress.streaming) {
      fail(fill->target(),
           Error(Errc::kNoSpace, "there is no room for it in the store, or its disk fails"));
    } else {
      return false;
    }
    return true;
  });
}

std::vector<FillPtr> WarmJob::add(const Purpose& purpose) {
  want_ = std::max(want_, purpose.want);
  if (purpose.precedence.is_due()) {
    precedence_ = purpose.precedence;
    pace_ = purpose.pace;
  } else {
    asked_for_ = true;
  }
  return fills_;
}

bool WarmJob::excuse() noexcept {
  precedence_ = {};
  pace_ = nullptr;
  return asked_for_;
}

std::vector<FillPtr> WarmJob::stop() {
  stopped_ = true;
  pending_.clear();
  return std::exchange(fills_, {});
}

void WarmJob::succeed(const Target& target) {
  ++complete_;
  verified_ += target.file().size;
}

void WarmJob::fail(const Target& target, const Error& error) {
  if (!error_) error_ = Error(error.code(), target.file().path + ": " + error.what());
  if (!concerns_one_file(error.code())) pending_.clear();
}

WarmProgress WarmJob::progress() const {
  WarmProgress progress{.bytes = snapshot_->bytes(),
                        .written = verified_,
                        .verified = verified_,
                        .files = snapshot_->files().size(),
                        .files_complete = complete_,
                        .running = running(),
                        .error = error_};
  for (const FillPtr& fill : fills_) progress.written += fill->progress().written;
  return progress;
}

}  // namespace weightfs::fetch
