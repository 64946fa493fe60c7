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
/// holds an entry that is not ours: it may be somebody's data and a wrong path. Does not follow
/// symbolic links. Needs root.
void give_directory(const std::filesystem::path& directory, const ProcessUser& user,
                    std::span<const std::string_view> ours);

}  // namespace weightfs::cli
