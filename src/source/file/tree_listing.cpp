// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/tree_listing.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/manifest.hpp"
#include "source/error_context.hpp"
#include "source/file/file_version.hpp"
#include "source/file/tree_walk.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::source {

namespace {

[[noreturn]] void refuse(const snapshot::File& listed, const std::string& why) {
  throw Error(Errc::kInvalid, std::string(snapshot::kManifestName) + " lists " +
                                  snapshot::printable(listed.path) + why);
}

/// Gives the files of the tree the digests that the manifest has for them. `files` is sorted by
/// path.
void apply_manifest(std::vector<snapshot::File> manifest, std::vector<snapshot::File>& files) {
  for (snapshot::File& listed : manifest) {
    const auto found = std::ranges::lower_bound(files, listed.path, {}, &snapshot::File::path);
    if (found == files.end() || found->path != listed.path) refuse(listed, ", which is not there");
    if (found->size != listed.size) {
      refuse(listed, " with " + std::to_string(listed.size) + " bytes, but it has " +
                         std::to_string(found->size));
    }
    if (found->validator.empty()) refuse(listed, " twice");
    if (listed.mtime == 0) listed.mtime = found->mtime;
    *found = std::move(listed);
  }
}

}  // namespace

snapshot::File describe_file(std::string path, const struct stat& status) {
  return {.path = std::move(path),
          .size = static_cast<std::uint64_t>(status.st_size),
          .executable = (status.st_mode & S_IXUSR) != 0,
          .mtime = status.st_mtim.tv_sec,
          .validator = version_of(status)};
}

std::vector<snapshot::File> list_tree(const Fd& root, const std::string& name,
                                      const std::stop_token& stop) {
  std::vector<FoundFile> found = walk_tree(root, name, stop);
  std::vector<snapshot::File> files;
  files.reserve(found.size());
  bool has_manifest = false;
  for (FoundFile& file : found) {
    if (file.path == snapshot::kManifestName) {
      has_manifest = true;
    } else {
      files.push_back(describe_file(std::move(file.path), file.status));
    }
  }
  if (!has_manifest) return files;

  std::ranges::sort(files, {}, &snapshot::File::path);
  const std::string path = name + "/" + std::string(snapshot::kManifestName);
  try {
    apply_manifest(snapshot::parse_manifest(read_file(path, snapshot::kMaxManifestBytes)), files);
  } catch (...) {
    rethrow_with(snapshot::printable(name));
  }
  return files;
}

}  // namespace weightfs::source
