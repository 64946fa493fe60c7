// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/tree_listing.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/manifest.hpp"
#include "source/error_context.hpp"
#include "source/file/tree_walk.hpp"

#include <algorithm>
#include <map>
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

/// Asks each filesystem once: links may lead to others than the root's.
class InodeNumbers {
 public:
  explicit InodeNumbers(const std::string& root) : root_(root) {}

  InodeNumber at(const FoundFile& file) {
    const auto known = by_device_.find(file.status.st_dev);
    if (known != by_device_.end()) return known->second;
    const InodeNumber answer = inode_number_at(root_ + "/" + file.path);
    by_device_.emplace(file.status.st_dev, answer);
    return answer;
  }

 private:
  const std::string& root_;
  std::map<dev_t, InodeNumber> by_device_;
};

}  // namespace

snapshot::File describe_file(std::string path, const struct stat& status,
                             InodeNumber inode_number) {
  return {.path = std::move(path),
          .size = static_cast<std::uint64_t>(status.st_size),
          .executable = (status.st_mode & S_IXUSR) != 0,
          .mtime = status.st_mtim.tv_sec,
          .validator = version_of(status, inode_number)};
}

std::vector<snapshot::File> list_tree(const Fd& root, const std::string& name,
                                      const std::stop_token& stop) {
  std::vector<FoundFile> found = walk_tree(root, name, stop);
  std::vector<snapshot::File> files;
  files.reserve(found.size());
  InodeNumbers inode_numbers(name);
  bool has_manifest = false;
  for (FoundFile& file : found) {
    if (file.path == snapshot::kManifestName) {
      has_manifest = true;
    } else {
      const InodeNumber inode_number = inode_numbers.at(file);
      files.push_back(describe_file(std::move(file.path), file.status, inode_number));
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
