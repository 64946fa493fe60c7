// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/settings.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weightfs::cli {

/// What a daemon needs before it can answer for its mount must not lie in that mount: it would wait
/// for itself, beyond any signal. Says so before anybody waits. Nothing here sends a request to a
/// weightfs, dead or alive. A value; knows the mounts of the moment it was made.
class OutsideMount {
 public:
  /// For a daemon: the mounts that there are, of which one is its own. No other one will do either,
  /// as none can be written to.
  OutsideMount();
  /// Before the mount: that place, too.
  explicit OutsideMount(const std::filesystem::path& mountpoint);
  /// For tests: absolute paths, without links.
  explicit OutsideMount(std::vector<std::string> mountpoints)
      : mountpoints_(std::move(mountpoints)) {}

  /// UsageError if `path`, symbolic links followed, lies inside of one. It need not exist; nothing
  /// is said about an empty one. `what` is in the message: "the store".
  void check(std::string_view what, const std::filesystem::path& path) const;
  /// Every path of the settings; of the store and the state also that no mount lies in them.
  void check(const Settings& settings) const;

 private:
  [[nodiscard]] std::string resolve(const std::filesystem::path& path) const;
  [[nodiscard]] const std::string* mount_around(std::string_view resolved) const;
  void check_directory(std::string_view what, const std::filesystem::path& path) const;

  std::vector<std::string> mountpoints_;
};

}  // namespace weightfs::cli
