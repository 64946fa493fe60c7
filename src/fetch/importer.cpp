// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/importer.hpp"

#include "base/thread.hpp"
#include "io/direct_file.hpp"
#include "source/file/local_copy.hpp"
#include "source/side_by_side.hpp"
#include "store/partial_blob.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <span>
#include <utility>

namespace weightfs::fetch {

namespace {

/// For the fill of somebody who has gone, to close.
constexpr std::chrono::seconds kClosingPatience{10};
constexpr std::chrono::milliseconds kClosingPause{20};
constexpr std::chrono::milliseconds kProgressInterval{200};

/// The fill whose source asks whether anybody but the importer holds it.
class SharedFill {
 public:
  void set(const FillPtr& fill) {
    fill_.with([&](std::weak_ptr<Fill>& known) { known = fill; });
  }
  [[nodiscard]] bool is_shared() const {
    const FillPtr fill = fill_.with([](const std::weak_ptr<Fill>& known) { return known.lock(); });
    return fill && fill->progress().holders > 1;
  }

 private:
  Synchronized<std::weak_ptr<Fill>> fill_;
};

/// Rung once by the fill, which may outlive whoever waits.
struct Latch {
  Synchronized<bool> over;
  std::condition_variable_any changed;
};

}  // namespace

Importer::Importer(Parts parts, const Options& options)
    : parts_(std::move(parts)),
      options_(options),
      hashing_(static_cast<std::ptrdiff_t>(std::max(1U, options.hashers))) {
}

void Importer::run(const std::vector<File>& files, const std::stop_token& stop) {
  // What states its digest first: it is most likely right, and makes others of its size no matter.
  std::vector<const File*> order;
  order.reserve(files.size());
  for (const bool claimed : {true, false}) {
    for (const File& file : files) {
      if (file.claimed.has_value() == claimed) order.push_back(&file);
    }
  }

  source::side_by_side(
      "import", std::max(1U, options_.files_at_once), order.size(), stop,
      [&](std::size_t index, const std::stop_token& end) { look_at(*order[index], end); });
}

void Importer::look_at(const File& file, const std::stop_token& stop) {
  if (const auto outcome = outcome_unread(file)) {
    parts_.on_bytes(file.size);
    return tell({.file = &file, .hashed = {}, .target = nullptr}, {.outcome = *outcome});
  }
  Found found{.file = &file, .hashed = {}, .target = nullptr};
  try {
    found.hashed = hash(file, stop);
  } catch (const Error& error) {
    if (error.code() == Errc::kCancelled) throw;
    return tell(found, {.outcome = Outcome::kFailed, .error = error});
  }
  found.target = parts_.wanted.find(found.hashed.digest, file.size);
  if (file.claimed && file.claimed != found.hashed.digest) {
    return tell(found, {.outcome = Outcome::kMismatched});
  }
  if (!found.target) return tell(found, {.outcome = Outcome::kUnknown});
  take_first(std::move(found), stop);
}

/// What can be told without reading the file.
std::optional<Importer::Outcome> Importer::outcome_unread(const File& file) const {
  const auto is_missing = [&](const Digest& digest) {
    return !parts_.store.contains(digest, file.size);
  };
  if (file.claimed) {
    if (!parts_.wanted.find(*file.claimed, file.size)) return Outcome::kUnknown;
    if (!is_missing(*file.claimed)) return Outcome::kPresent;
  } else if (!parts_.wanted.any_of_size(file.size, is_missing)) {
    return Outcome::kPresent;
  }
  return std::nullopt;
}

Importer::Hashed Importer::hash(const File& file, const std::stop_token& stop) {
  hashing_.acquire();
  struct Release {
    std::counting_semaphore<>& semaphore;
    ~Release() { semaphore.release(); }
  } const release{hashing_};
  Sha256 hash;
  Hashed hashed;
  io::DirectFile opened(parts_.tree->open(file));
  if (file.size > 0) {
    const auto reader = parts_.tree->readers().take();
    reader->read(
        opened, {0, file.size},
        [&](std::uint64_t, std::span<const std::byte> data) {
          parts_.on_bytes(data.size());
          while (!data.empty()) {
            const std::uint64_t to_part = store::kPartSize - hash.length() % store::kPartSize;
            const auto step =
                data.first(static_cast<std::size_t>(std::min<std::uint64_t>(data.size(), to_part)));
            hash.update(step);
            data = data.subspan(step.size());
            const bool is_boundary = hash.length() % store::kPartSize == 0;
            if (is_boundary && hash.length() < file.size) {
              hashed.midstates.push_back(hash.midstate());
            }
          }
        },
        stop);
  }
  source::LocalTree::check_version(file, opened.fd());
  hashed.digest = hash.digest();
  return hashed;
}

/// One file at a time is taken for a content; others that have it wait for how that goes.
void Importer::take_first(Found found, const std::stop_token& stop) {
  const Digest digest = found.hashed.digest;
  const bool first = taking_.with([&](auto& taking) {
    const auto [entry, added] = taking.try_emplace(digest);
    if (!added) entry->second.push_back(std::move(found));
    return added;
  });
  if (!first) return;
  for (;;) {
    const Result result = take(found, stop);
    tell(found, result);
    const bool again = taking_.with([&](auto& taking) {
      const auto entry = taking.find(digest);
      // A dry run leaves nothing in the store by which the next one would be known.
      if (entry->second.empty()) {
        if (options_.dry_run == DryRun::kNo) taking.erase(entry);
        return false;
      }
      found = std::move(entry->second.back());
      entry->second.pop_back();
      return true;
    });
    if (!again) return;
  }
}

Importer::Result Importer::take(const Found& found, const std::stop_token& stop) {
  if (parts_.store.contains(found.hashed.digest, found.file->size)) {
    return {.outcome = Outcome::kPresent};
  }
  if (options_.dry_run == DryRun::kYes) return {.outcome = Outcome::kWouldTake};
  try {
    admit(found.target->snapshot);
    return options_.how == How::kLink ? link(found) : fill(found, stop);
  } catch (const Error& error) {
    if (stop.stop_requested()) throw;
    return {.outcome = Outcome::kFailed, .error = error};
  }
}

void Importer::admit(const snapshot::SnapshotPtr& snapshot) {
  const auto admission = admissions_.with([&](auto& admissions) {
    auto& known = admissions[snapshot->key()];
    if (!known) known = std::make_shared<Admission>();
    return known;
  });
  std::call_once(admission->asked, [&] {
    try {
      parts_.admit(snapshot);
    } catch (const Error& error) {
      admission->refusal = error;
    }
  });
  if (admission->refusal) throw *admission->refusal;
}

Importer::Result Importer::fill(const Found& found, const std::stop_token& stop) {
  const auto deadline = std::chrono::steady_clock::now() + kClosingPatience;
  bool corrupt = false;
  for (;;) {
    const auto result = try_fill(found, stop);
    if (!result) {  // the fill of somebody who has gone
      if (std::chrono::steady_clock::now() >= deadline) return {.outcome = Outcome::kFetching};
      if (!pause(stop, kClosingPause)) throw Error(Errc::kCancelled, "the daemon is stopping");
      continue;
    }
    // An earlier fill may have left wrong bytes, which are gone now; these were hashed.
    const bool wrong = result->error && result->error->code() == Errc::kCorrupt;
    if (!wrong || std::exchange(corrupt, true)) return *result;
  }
}

/// nullopt: it has to be tried again.
std::optional<Importer::Result> Importer::try_fill(const Found& found,
                                                   const std::stop_token& stop) {
  const auto shared = std::make_shared<SharedFill>();
  const auto copy = std::make_shared<source::LocalCopy>(
      source::LocalCopy::Copy{
          .tree = parts_.tree, .file = *found.file, .sha256 = found.hashed.digest},
      found.target->source, [shared] { return shared->is_shared(); });
  Target target = *found.target;
  target.source = copy;
  const FillPtr fill = parts_.fetcher.fill(target);
  if (fill->target().source != copy) {
    if (fill->progress().holders > 1) return Result{.outcome = Outcome::kFetching};
    return std::nullopt;
  }
  shared->set(fill);
  fill->want(Want::kBackground);
  wait_for_end(fill, stop);
  if (const auto error = fill->error()) return Result{.outcome = Outcome::kFailed, .error = error};
  if (fill->progress().state != FillState::kComplete) {
    return Result{
        .outcome = Outcome::kFailed,
        .error = Error(Errc::kNoSpace, "there is no room for it in the store, or its disk fails")};
  }
  if (!copy->was_opened() && found.file->size > 0) return Result{.outcome = Outcome::kPresent};
  const bool cloned = copy->bytes_read() == 0 && found.file->size > 0;
  return Result{.outcome = cloned ? Outcome::kReflinked : Outcome::kCopied};
}

void Importer::wait_for_end(const FillPtr& fill, const std::stop_token& stop) {
  const auto latch = std::make_shared<Latch>();
  fill->on_end([latch] {
    latch->over.with([](bool& over) { over = true; });
    latch->changed.notify_all();
  });
  std::uint64_t told = 0;
  const auto tell_progress = [&] {
    const std::uint64_t written = fill->progress().written;
    if (written > told) parts_.on_bytes(written - std::exchange(told, written));
  };
  for (;;) {
    auto over = latch->over.lock();
    const bool is_over =
        over.wait_until(latch->changed, stop, std::chrono::steady_clock::now() + kProgressInterval,
                        [&] { return *over; });
    if (is_over) break;
    if (stop.stop_requested()) throw Error(Errc::kCancelled, "the daemon is stopping");
    tell_progress();
  }
  tell_progress();
}

Importer::Result Importer::link(const Found& found) {
  const Fd original = parts_.tree->open(*found.file);
  const auto check = [&] { source::LocalTree::check_version(*found.file, original); };
  switch (parts_.fetcher.adopt(
      *found.target, {.file = original, .midstates = found.hashed.midstates, .check = check})) {
    case Fetcher::Adopted::kYes:
      return {.outcome = Outcome::kLinked};
    case Fetcher::Adopted::kPresent:
      return {.outcome = Outcome::kPresent};
    case Fetcher::Adopted::kFilling:
      break;
  }
  return {.outcome = Outcome::kFetching};
}

void Importer::tell(const Found& found, const Result& result) {
  const bool filled = result.outcome == Outcome::kReflinked || result.outcome == Outcome::kCopied;
  if (!filled && options_.dry_run == DryRun::kNo) parts_.on_bytes(found.file->size);
  parts_.on_file({.file = *found.file,
                  .outcome = result.outcome,
                  .target = found.target,
                  .error = result.error});
}

}  // namespace weightfs::fetch
