// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/process_user.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weightfs::cli {

/// What give_directory needs to know of the store or of the state.
struct DirectoryKind {
  std::string_view what;  ///< in messages: "the store"
  /// Of the names in it, one that is not ours.
  std::optional<std::string> (*foreign)(std::span<const std::string> names);
};

/// A name that does not belong into the state directory.
[[nodiscard]] std::optional<std::string> foreign_to_state(std::span<const std::string> names);

/// Makes `directory` (and its missing parents) and gives it, with all that is in it, to `user`, for
/// a daemon that has no privilege. Refuses, changing nothing: with Error(kInvalid) a directory that
/// holds an entry that is not ours, because it may be somebody's data and a wrong path; with
/// Error(kBusy) one that is another user's and that a process has locked, because that would lose
/// what it works with. Needs root.
///
/// The directory itself goes last, and one that is the user's already is left as it is: root does
/// not walk through what an unprivileged user can change, except to take it from another such user.
/// `directory` may be a symbolic link; below it none is followed, and a file that has a second name
/// stays whose it is.
void give_directory(const std::filesystem::path& directory, const ProcessUser& user,
                    const DirectoryKind& kind);

}  // namespace weightfs::cli
