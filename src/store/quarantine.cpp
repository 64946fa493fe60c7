// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/quarantine.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

namespace weightfs::store {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNoteSuffix = ".txt";

std::int64_t seconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::uint64_t size_or_zero(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

QuarantineLimits on_this_disk(QuarantineLimits limits, const fs::path& directory) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (!error) limits.bytes = std::min<std::uint64_t>(limits.bytes, space.capacity / limits.share);
  return limits;
}

}  // namespace

Quarantine::Quarantine(fs::path directory, QuarantineLimits limits, const Clock& clock, Log log)
    : directory_(std::move(directory)),
      limits_(on_this_disk(limits, directory_)),
      clock_(clock),
      log_(std::move(log)) {
  std::vector<Entry> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;  // a note that cannot be read counts as none
    if (name.ends_with(".tmp")) {
      fs::remove(entry->path(), ignored);
    } else if (name.ends_with(kNoteSuffix)) {
      const std::string stem = name.substr(0, name.size() - kNoteSuffix.size());
      found.push_back({.name = stem, .size = size_or_zero(directory_ / stem)});
    } else if (!fs::exists(directory_ / (name + std::string(kNoteSuffix)), ignored)) {
      found.push_back({.name = name, .size = size_or_zero(entry->path())});
    }
  }
  if (error) throw_errno(error.value(), "list " + directory_.string());
  // Names begin with the time, at a fixed width.
  std::sort(found.begin(), found.end(),
            [](const Entry& left, const Entry& right) { return left.name < right.name; });
  entries_.with([&](Entries& entries) { entries.assign(found.begin(), found.end()); });
}

std::string Quarantine::new_name(const Digest& digest) const {
  const std::string stem = fmt::format("{:012}", seconds(clock_.wall()));
  for (unsigned attempt = 0;; ++attempt) {
    std::string name = fmt::format("{}.{:03}-{}", stem, attempt, digest.hex());
    std::error_code error;
    if (!fs::exists(directory_ / (name + std::string(kNoteSuffix)), error) &&
        !fs::exists(directory_ / name, error)) {
      return name;
    }
  }
}

void Quarantine::remove(const Entry& entry) const {
  std::error_code error;
  fs::remove(directory_ / entry.name, error);
  fs::remove(directory_ / (entry.name + std::string(kNoteSuffix)), error);
}

void Quarantine::take(const fs::path& file, const Digest& digest, const std::string& reason) {
  log_.warning("quarantine {}: {}", digest.hex(), reason);
  const std::uint64_t size = size_or_zero(file);
  const bool keep = size <= limits_.bytes && limits_.files > 0;
  const Entry entry{.name = new_name(digest), .size = keep ? size : 0};

  const Entries too_old = entries_.with([&](Entries& entries) {
    Entries removed;
    std::uint64_t bytes =
        std::accumulate(entries.begin(), entries.end(), entry.size,
                        [](std::uint64_t sum, const Entry& each) { return sum + each.size; });
    while (!entries.empty() && (entries.size() >= limits_.files || bytes > limits_.bytes)) {
      bytes -= entries.front().size;
      removed.push_back(std::move(entries.front()));
      entries.pop_front();
    }
    entries.push_back(entry);
    return removed;
  });
  for (const Entry& old : too_old) remove(old);

  if (!keep || ::rename(file.c_str(), (directory_ / entry.name).c_str()) != 0) {
    if (::unlink(file.c_str()) != 0 && errno != ENOENT)
      throw_errno(errno, "remove " + file.string());
  }
  try {
    write_file_durably(
        directory_ / (entry.name + std::string(kNoteSuffix)),
        fmt::format("name: {}\nsize: {}\nunix time: {}\nkept: {}\nreason: {}\n", digest.hex(), size,
                    seconds(clock_.wall()), keep ? "yes" : "no", reason));
  } catch (const Error& error) {
    log_.warning("no note for {}: {}", entry.name, error.what());
  }
}

std::uint64_t Quarantine::files() const {
  return entries_.with([](const Entries& entries) { return entries.size(); });
}

}  // namespace weightfs::store
