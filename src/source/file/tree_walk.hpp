// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <sys/stat.h>
#include <stop_token>
#include <string>
#include <vector>

namespace weightfs::source {

struct FoundFile {
  std::string path;  ///< below the root
  struct stat status;
};

/// All regular files below `root`, hidden ones included, in no order; `name` is the root's, for
/// messages.
///
/// Symbolic links are followed, out of the tree too (whoever named the tree put them there, and a
/// Hub cache is made of them): to files, and to directories. Sockets, devices and FIFOs are passed
/// over, as is `lost+found` in the root. What vanishes meanwhile was never there. Error: kInvalid a
/// link that leads nowhere, a directory that is inside itself, more than 128 levels, more than
/// kMaxFiles files; kPermission a directory that may not be read; and as throw_file_error.
[[nodiscard]] std::vector<FoundFile> walk_tree(const Fd& root, const std::string& name,
                                               const std::stop_token& stop);

}  // namespace weightfs::source
