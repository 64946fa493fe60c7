// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/first_versions.hpp"

#include "base/error.hpp"
#include "source/file/file_version.hpp"

namespace weightfs::source {

namespace {

/// Files under way at one time are far fewer; forgetting only makes the check start afresh.
constexpr std::size_t kMaxObjects = 4096;

}  // namespace

std::optional<std::string> FirstVersions::known(const std::string& object) const {
  return versions_.with([&](const auto& versions) -> std::optional<std::string> {
    const auto found = versions.find(object);
    if (found == versions.end()) return std::nullopt;
    return found->second;
  });
}

void FirstVersions::check(const std::string& object, const Fd& fd, const struct stat& status) {
  std::optional<std::string> first = known(object);
  if (!first) {
    // Asked for the first time only: on NFS and Lustre it goes to the servers.
    const std::string now = version_of(status, inode_number_of(fd));
    first = versions_.with([&](auto& versions) {
      if (versions.size() >= kMaxObjects) versions.clear();
      return versions.try_emplace(object, now).first->second;
    });
  }
  if (!is_version(*first, status)) {
    throw Error(Errc::kChanged, "it is " + version_of(status, InodeNumber::kStable) +
                                    " now and was " + *first + " when it was first read");
  }
}

void FirstVersions::forget(const std::string& object) {
  versions_.with([&](auto& versions) { versions.erase(object); });
}

}  // namespace weightfs::source
