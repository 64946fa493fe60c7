// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/directory_listing.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/synchronized.hpp"
#include "base/thread.hpp"
#include "digest/sha256.hpp"
#include "snapshot/manifest.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <span>
#include <thread>
#include <utility>

namespace weightfs::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferSize = 1 << 20;
constexpr std::chrono::milliseconds kProgressInterval{200};

struct stat stat_of(const fs::path& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) throw_errno(errno, path.string());
  return found;
}

snapshot::File file_of(std::string path, const struct stat& found) {
  return {.path = std::move(path),
          .size = static_cast<std::uint64_t>(found.st_size),
          .executable = (found.st_mode & 0111) != 0,
          .mtime = found.st_mtime};
}

/// Walks with `listing` and the path so far; recursion is as deep as the tree, which the limit on
/// the length of a path bounds.
void walk(const fs::path& root, const std::string& prefix, DirectoryListing& listing) {
  std::error_code failed;
  for (fs::directory_iterator entry(root / prefix, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::string path = prefix + entry->path().filename().string();
    if (path == snapshot::kManifestName) continue;
    snapshot::check_path(path);
    std::error_code broken;
    if (entry->is_symlink() && !fs::is_regular_file(entry->path(), broken)) {
      listing.skipped.push_back(path + ": a link that does not lead to a file");
    } else if (entry->is_directory()) {
      walk(root, path + "/", listing);
    } else if (entry->is_regular_file()) {
      const struct stat found = stat_of(entry->path());
      listing.files.push_back(file_of(std::move(path), found));
    } else {
      listing.skipped.push_back(path + ": neither a file nor a directory");
    }
  }
  if (failed) throw_errno(failed.value(), fmt::format("list {}", (root / prefix).string()));
}

/// What the hashing threads and the caller share.
struct Work {
  const fs::path& directory;
  std::vector<snapshot::File>& files;
  std::atomic<std::size_t> next = 0;
  std::atomic<std::uint64_t> hashed = 0;
  struct State {
    unsigned running = 0;
    std::exception_ptr failure;
  };
  Synchronized<State> state{};
  std::condition_variable_any over{};
};

Digest hash(const fs::path& path, const snapshot::File& file, std::stop_token stop, Work& work) {
  const auto changed = [&] {
    return Error(Errc::kChanged, fmt::format("{} changes while it is read", path.string()));
  };
  const Fd fd = open_file(path, O_RDONLY);
  std::vector<std::byte> buffer(kBufferSize);
  Sha256 hasher;
  std::uint64_t offset = 0;
  while (offset < file.size) {
    if (stop.stop_requested()) throw Error(Errc::kCancelled, "another file failed");
    const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), file.size - offset);
    const std::size_t got = read_at(fd, offset, std::span(buffer).first(wanted));
    if (got != wanted) throw changed();
    hasher.update(std::span(buffer).first(got));
    offset += got;
    work.hashed += got;
  }
  struct stat found{};
  if (::fstat(fd.value(), &found) != 0) throw_errno(errno, path.string());
  if (static_cast<std::uint64_t>(found.st_size) != file.size || found.st_mtime != file.mtime) {
    throw changed();
  }
  return hasher.digest();
}

/// The body of one thread: takes files until there are none, or until somebody failed.
void hash_next_files(Work& work, std::stop_token stop) {
  std::exception_ptr failure;
  try {
    for (std::size_t i = work.next++; i < work.files.size() && !stop.stop_requested();
         i = work.next++) {
      snapshot::File& file = work.files[i];
      file.sha256 = hash(work.directory / file.path, file, stop, work);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  work.state.with([&](Work::State& state) {
    --state.running;
    if (!state.failure) state.failure = failure;
  });
  work.over.notify_all();
}

}  // namespace

DirectoryListing list_directory(const fs::path& directory) {
  if (!S_ISDIR(stat_of(directory).st_mode)) {
    throw Error(Errc::kInvalid, fmt::format("{} is not a directory", directory.string()));
  }
  DirectoryListing listing;
  walk(directory, "", listing);
  std::ranges::sort(listing.files, {}, &snapshot::File::path);
  std::ranges::sort(listing.skipped);
  return listing;
}

void hash_files(const fs::path& directory, std::vector<snapshot::File>& files,
                const HashOptions& options) {
  Work work{.directory = directory, .files = files};
  const unsigned count = std::max(1U, options.threads);
  work.state.with([&](Work::State& state) { state.running = count; });
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < count; ++i) {
    threads.push_back(start_thread(fmt::format("hash-{}", i), [&work](std::stop_token stop) {
      hash_next_files(work, std::move(stop));
    }));
  }
  for (;;) {
    {
      auto state = work.state.lock();
      state.wait_until(work.over, std::chrono::steady_clock::now() + kProgressInterval,
                       [&] { return state->running == 0 || state->failure; });
      if (state->running == 0 || state->failure) break;
    }
    if (options.progress) options.progress(work.hashed);
  }
  threads.clear();  // stops and joins
  if (const auto failure = work.state.with([](Work::State& state) { return state.failure; })) {
    std::rethrow_exception(failure);
  }
  if (options.progress) options.progress(work.hashed);
}

}  // namespace weightfs::cli
