// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/ownership.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

namespace weightfs::cli {

namespace {

namespace fs = std::filesystem;

void check_entries(const fs::path& directory, std::span<const std::string_view> ours) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    // Temporary files of an interrupted write carry the name of what they would have become.
    const bool known = std::any_of(ours.begin(), ours.end(), [&](std::string_view own) {
      return name == own || name == std::string(own) + ".tmp";
    });
    if (!known) {
      throw Error(Errc::kInvalid, directory.string() + " holds " + name +
                                      ", which is not ours; use an empty directory");
    }
  }
}

void give(const fs::path& path, const ProcessUser& user) {
  struct stat now = {};
  if (::lstat(path.c_str(), &now) != 0) throw_errno(errno, "stat " + path.string());
  if (now.st_uid == user.uid && now.st_gid == user.gid) return;
  if (::lchown(path.c_str(), user.uid, user.gid) != 0) {
    throw_errno(errno, "give " + path.string() + " to " + user.name);
  }
}

}  // namespace

std::span<const std::string_view> store_entries() noexcept {
  static constexpr std::array<std::string_view, 9> kEntries = {
      "VERSION", "lock",    "index.db",   "index.db-wal", "index.db-shm",
      "blobs",   "partial", "quarantine", "lost+found"};
  return kEntries;
}

std::span<const std::string_view> state_entries() noexcept {
  static constexpr std::array<std::string_view, 4> kEntries = {"catalog.json", "snapshots",
                                                               "weightfs.log", "lost+found"};
  return kEntries;
}

void give_directory(const fs::path& directory, const ProcessUser& user,
                    std::span<const std::string_view> ours) {
  try {
    fs::create_directories(directory);
    check_entries(directory, ours);
    give(directory, user);
    for (auto it = fs::recursive_directory_iterator(directory); it != fs::end(it); ++it) {
      if (it->path().filename() == "lost+found") {
        it.disable_recursion_pending();
      } else {
        give(it->path(), user);
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw_errno(error.code().value(), "prepare " + directory.string());
  }
}

}  // namespace weightfs::cli
