// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/file.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace weightfs::cli {

struct DirectoryListing {
  std::vector<snapshot::File> files;  ///< sorted by path, bytewise; without sha256
  std::vector<std::string> skipped;   ///< what is neither a file nor a directory, and why
};

/// Every regular file below `directory`, whatever its name, but for the manifest itself. Links to
/// files count as the files; links to directories are skipped (they may lead in circles). Error
/// kNotFound, kPermission, kInvalid (not a directory; a path that no snapshot can have), kIo.
[[nodiscard]] DirectoryListing list_directory(const std::filesystem::path& directory);

struct HashOptions {
  unsigned threads = 1;
  /// Bytes hashed so far; called on the caller's thread.
  std::function<void(std::uint64_t)> progress;
};

/// Fills in the sha256 of each file, several files at once. Error(kChanged) for a file that is not
/// the one that was listed, or changes meanwhile; else as list_directory.
void hash_files(const std::filesystem::path& directory, std::vector<snapshot::File>& files,
                const HashOptions& options);

}  // namespace weightfs::cli
