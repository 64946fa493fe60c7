// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "snapshot/file.hpp"
#include "source/file/file_version.hpp"

#include <sys/stat.h>
#include <stop_token>
#include <string>
#include <vector>

namespace weightfs::source {

/// A file of which nothing but its status is known.
[[nodiscard]] snapshot::File describe_file(std::string path, const struct stat& status,
                                           InodeNumber inode_number);

/// The files below `root`, as the class comment of FileSource says. Throws as walk_tree, and
/// Error(kInvalid) where weightfs.json is malformed or does not fit the tree.
[[nodiscard]] std::vector<snapshot::File> list_tree(const Fd& root, const std::string& name,
                                                    const std::stop_token& stop);

}  // namespace weightfs::source
