// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/layout.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace weightfs::store {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVersionText = "weightfs store 1\n";
constexpr std::string_view kPartsSuffix = ".parts";
/// Only the daemon has business here; consumers come through the mount.
constexpr unsigned kFolderMode = 0700;

constexpr std::string_view kVersionName = "VERSION";
// At the root of a filesystem that was made for the store.
constexpr std::string_view kLostAndFound = "lost+found";
constexpr std::array<std::string_view, 2> kNamesBeforeVersion{"VERSION.tmp", "lock"};
constexpr std::array<std::string_view, 12> kNames{
    kVersionName,   "VERSION.tmp",  "blobs",        "index.db", "index.db-journal",
    "index.db-shm", "index.db-wal", "index.db.tmp", "lock",     "partial",
    "probe",        "quarantine"};

void make_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    throw_errno(errno, "create " + path.string());
  }
}

bool is_filesystem_root(const fs::path& directory) {
  struct stat self{};
  struct stat parent{};
  return ::stat(directory.c_str(), &self) == 0 &&
         ::stat((directory / "..").c_str(), &parent) == 0 &&
         (self.st_dev != parent.st_dev || self.st_ino == parent.st_ino);
}

bool has(const auto& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

fs::path Layout::blob_folder(const Digest& digest) const {
  return blobs() / digest.hex().substr(0, 2);
}

fs::path Layout::blob(const Digest& digest) const {
  const std::string hex = digest.hex();
  return blobs() / hex.substr(0, 2) / hex;
}

fs::path Layout::parts(const Digest& digest) const {
  return blob(digest).concat(kPartsSuffix.begin(), kPartsSuffix.end());
}

fs::path Layout::partial(const Digest& key) const {
  return partials() / key.hex();
}

std::string Layout::root() const {
  struct statx status{};
  if (::statx(AT_FDCWD, blobs().c_str(), 0, STATX_INO | STATX_BTIME, &status) != 0) {
    throw_errno(errno, "stat " + blobs().string());
  }
  return fmt::format("{}:{}.{:09}", status.stx_ino, status.stx_btime.tv_sec,
                     status.stx_btime.tv_nsec);
}

void Layout::create_directory() const {
  std::error_code error;
  if (fs::is_directory(directory_, error)) return;
  if (fs::exists(directory_, error)) {
    throw Error(Errc::kInvalid,
                fmt::format("the store {} is not a directory", directory_.string()));
  }
  if (directory_.has_parent_path()) {
    fs::create_directories(directory_.parent_path(), error);
    if (error) throw_errno(error.value(), "create " + directory_.parent_path().string());
  }
  make_folder(directory_);
}

std::optional<std::string> foreign_entry(std::span<const std::string> names) {
  const bool versioned = has(names, std::string(kVersionName));
  std::optional<std::string> first;
  for (const std::string& name : names) {
    const bool ours = versioned ? has(kNames, name) : has(kNamesBeforeVersion, name);
    if (!ours && (!first || name < *first)) first = name;
  }
  return first;
}

void Layout::refuse_foreign() const {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name == kLostAndFound && is_filesystem_root(directory_)) continue;
    names.push_back(std::move(name));
  }
  if (error) throw_errno(error.value(), "list " + directory_.string());
  if (const auto foreign = foreign_entry(names)) {
    throw Error(Errc::kInvalid,
                fmt::format("{} is not a weightfs store: it holds \"{}\"; give an empty directory",
                            directory_.string(), *foreign));
  }
}

namespace {

/// What a person is shown of a VERSION file: its first line, as far as it can be printed.
std::string one_line(std::string_view text) {
  std::string line(text.substr(0, std::min<std::size_t>(text.find('\n'), 64)));
  std::replace_if(line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return line;
}

}  // namespace

void Layout::initialise() const {
  std::error_code error;
  if (!fs::exists(version(), error)) {
    // VERSION comes first: whatever stands beside it later is ours.
    write_file_durably(version(), kVersionText);
  } else if (const std::string text = read_file(version(), 4096); text != kVersionText) {
    throw Error(Errc::kUnsupported,
                fmt::format("the store {} has format \"{}\", and this build reads \"{}\"; it is "
                            "expendable: remove it, or choose another directory",
                            directory_.string(), one_line(text), one_line(kVersionText)));
  }
  fs::remove(version().concat(".tmp"), error);
  fs::remove(probe(), error);
  make_folder(directory_ / "blobs");
  make_folder(blobs());
  make_folder(partials());
  make_folder(quarantine());
}

std::optional<Digest> digest_of_name(std::string_view name) {
  const std::optional<Digest> digest = Digest::parse(name);
  return digest && digest->hex() == name ? digest : std::nullopt;
}

}  // namespace weightfs::store
