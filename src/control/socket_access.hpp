// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <filesystem>
#include <string>

namespace weightfs::control {

/// What to do about a control socket that refuses this user, to be put behind the refusal: "; run
/// it with sudo, or as a member of the group weightfs". Names the group where it can be seen and a
/// membership would help. Thread-safe.
[[nodiscard]] std::string who_may_connect(const std::filesystem::path& socket);

}  // namespace weightfs::control
