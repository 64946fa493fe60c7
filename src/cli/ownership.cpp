// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/ownership.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/process_lock.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

namespace weightfs::cli {

namespace {

namespace fs = std::filesystem;

// Everything below goes by descriptor, one name at a time: what belongs to the user already can
// change under root's hands, and a path could lead anywhere by the time that it is used.

constexpr int kDepth = 8;  // ours are at most 4 deep; others must not use up the stack
constexpr std::string_view kNotOurs = "lost+found";
constexpr const char* kLock = "lock";  // of the store and of the state

struct stat status_of(const Fd& place, const fs::path& path) {
  struct stat status = {};
  if (::fstat(place.value(), &status) != 0) throw_errno(errno, "stat " + path.string());
  return status;
}

std::vector<std::string> names_in(const Fd& directory, const fs::path& path) {
  // A descriptor of its own: fdopendir takes it, and moves its position.
  const int copy = ::openat(directory.value(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) throw_errno(errno, "list " + path.string());
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy), &::closedir);
  if (!stream) throw_errno(errno, "list " + path.string());
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) throw_errno(errno, "list " + path.string());
  return names;
}

void give(const Fd& place, const fs::path& path, const ProcessUser& user) {
  if (::fchownat(place.value(), "", user.uid, user.gid, AT_EMPTY_PATH) != 0) {
    throw_errno(errno, "give " + path.string() + " to " + user.name);
  }
}

bool is_given(const struct stat& status, const ProcessUser& user) {
  return status.st_uid == user.uid && status.st_gid == user.gid;
}

// A directory is given after what is in it: until then its user can put nothing there.
void give_tree(const Fd& parent, const std::string& name, const fs::path& path,
               const ProcessUser& user, int depth) {
  const Fd place(::openat(parent.value(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!place) {
    if (errno == ENOENT) return;  // gone meanwhile
    throw_errno(errno, "open " + path.string());
  }
  const struct stat status = status_of(place, path);
  if (S_ISDIR(status.st_mode)) {
    if (depth == kDepth) throw Error(Errc::kInvalid, path.string() + " is too deep to be ours");
    for (const std::string& child : names_in(place, path)) {
      give_tree(place, child, path / child, user, depth + 1);
    }
  } else if (status.st_nlink > 1) {
    return;  // nothing of ours has a second name: it may be somebody else's file
  }
  if (!is_given(status, user)) give(place, path, user);
}

}  // namespace

std::optional<std::string> foreign_to_state(std::span<const std::string> names) {
  static constexpr std::array<std::string_view, 12> kOurs = {
      "catalog.json",    "catalog.json.tmp",    "events.jsonl", "events.jsonl.1", "leases.json",
      "leases.json.tmp", "leases.json.damaged", "lock",         "snapshots",      "uses",
      "uses.tmp",        "weightfs.log"};
  for (const std::string& name : names) {
    if (std::find(kOurs.begin(), kOurs.end(), name) == kOurs.end()) return name;
  }
  return std::nullopt;
}

void give_directory(const fs::path& directory, const ProcessUser& user, const DirectoryKind& kind) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) throw_errno(failed.value(), "create " + directory.string());
  const Fd top(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top) throw_errno(errno, "open " + directory.string());
  std::vector<std::string> names = names_in(top, directory);
  std::erase(names, kNotOurs);
  if (const auto foreign = kind.foreign(names)) {
    throw Error(Errc::kInvalid, directory.string() + " holds " + *foreign +
                                    ", which is not ours; use an empty directory");
  }
  if (is_given(status_of(top, directory), user)) return;
  const Fd unlocked = keep_unlocked(top, kLock, directory, kind.what);
  for (const std::string& name : names) give_tree(top, name, directory / name, user, 1);
  give(top, directory, user);
}

}  // namespace weightfs::cli
