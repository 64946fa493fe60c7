// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/process_user.hpp"

#include <filesystem>
#include <span>
#include <string_view>

namespace weightfs::cli {

/// What a directory of ours may hold; anything else in it is somebody else's.
[[nodiscard]] std::span<const std::string_view> store_entries() noexcept;
[[nodiscard]] std::span<const std::string_view> state_entries() noexcept;

/// Makes `directory` (and its missing parents) and gives it, with all that is in it, to `user`, for
/// a daemon that has no privilege. Refuses with Error(kInvalid), changing nothing, a directory that
/// holds an entry that is not ours: it may be somebody's data and a wrong path. Needs root.
///
/// The directory itself goes last, and one that is the user's already is left as it is: root does
/// not walk through what an unprivileged user can change, except to take it from another such user.
/// `directory` may be a symbolic link; below it none is followed, and a file that has a second name
/// stays whose it is.
void give_directory(const std::filesystem::path& directory, const ProcessUser& user,
                    std::span<const std::string_view> ours);

}  // namespace weightfs::cli
