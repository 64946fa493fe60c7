// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/outside_mount.hpp"

#include "cli/exit_code.hpp"
#include "keeper/mount.hpp"
#include "keeper/mount_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <system_error>

namespace weightfs::cli {

namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel has it; who opens the path is told of more

bool is_inside(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

/// Puts the parts of `path` before what is left to walk.
void prepend(std::deque<fs::path>& left, const fs::path& path) {
  left.insert(left.begin(), path.begin(), path.end());
}

}  // namespace

OutsideMount::OutsideMount() {
  for (keeper::MountEntry& entry : keeper::mount_table()) {
    if (entry.filesystem == keeper::Mount::kFilesystem) {
      mountpoints_.push_back(std::move(entry.mountpoint));
    }
  }
}

OutsideMount::OutsideMount(const fs::path& mountpoint) : OutsideMount() {
  mountpoints_.push_back(resolve(mountpoint));
}

/// Link by link, rather than with realpath(3), to stop at the first mount: to look up anything in
/// there is to wait for its daemon.
std::string OutsideMount::resolve(const fs::path& path) const {
  fs::path walked = "/";
  std::deque<fs::path> left;
  prepend(left, fs::absolute(path).relative_path());
  for (int links = 0; !left.empty();) {
    const fs::path part = std::move(left.front());
    left.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      walked = walked.parent_path();
      continue;
    }
    walked /= part;
    if (mount_around(walked.native()) != nullptr || links == kMostLinks) continue;
    std::error_code no_link;
    const fs::path target = fs::read_symlink(walked, no_link);
    if (no_link) continue;
    ++links;
    walked = target.is_absolute() ? fs::path("/") : walked.parent_path();
    prepend(left, target.relative_path());
  }
  return walked.native();
}

const std::string* OutsideMount::mount_around(std::string_view resolved) const {
  const auto found = std::ranges::find_if(
      mountpoints_, [&](const std::string& each) { return is_inside(resolved, each); });
  return found == mountpoints_.end() ? nullptr : &*found;
}

void OutsideMount::check(std::string_view what, const fs::path& path) const {
  if (path.empty()) return;
  if (const std::string* mount = mount_around(resolve(path))) {
    throw UsageError(
        fmt::format("{} ({}) lies inside the mount point {}: the daemon would wait for "
                    "itself",
                    what, path.string(), *mount));
  }
}

void OutsideMount::check_directory(std::string_view what, const fs::path& path) const {
  check(what, path);
  const std::string directory = resolve(path);
  for (const std::string& mount : mountpoints_) {
    if (is_inside(mount, directory)) {
      throw UsageError(
          fmt::format("the mount point {} lies inside {} ({}): the mount would cover a "
                      "part of it",
                      mount, what, path.string()));
    }
  }
}

void OutsideMount::check(const Settings& settings) const {
  for (const fs::path& store : settings.stores) check_directory("the store", store);
  check_directory("the state directory", settings.state);
  check("the control socket", settings.socket);
  check("the CA bundle", settings.ca_bundle);
  check("the file of credentials", settings.credentials.file);
  check("the file of the Hub's token", settings.hub.token_file);
}

}  // namespace weightfs::cli
