// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/local_tree.hpp"

#include "snapshot/byte_text.hpp"
#include "source/file/beneath.hpp"
#include "source/file/file_error.hpp"
#include "source/file/file_version.hpp"

#include <fcntl.h>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace weightfs::source {

namespace {

namespace fs = std::filesystem;

/// Many files are read at once, one reader each.
constexpr io::DirectReaderOptions kReader{.queue_depth = 4, .chunk = 1 << 20};

/// The folder of the repository of which `directory` is a snapshot in a Hub cache, or part of one:
/// REPOSITORY/snapshots/COMMIT/..., beside REPOSITORY/blobs.
std::optional<fs::path> hub_repository(const fs::path& directory) {
  for (fs::path at = directory; at.has_relative_path(); at = at.parent_path()) {
    const fs::path above = at.parent_path();
    if (above.filename() != "snapshots") continue;
    std::error_code error;
    if (fs::is_directory(above.parent_path() / "blobs", error)) return above.parent_path();
  }
  return std::nullopt;
}

}  // namespace

std::optional<Digest> claimed_digest(std::string_view path) {
  constexpr std::string_view kPrefix = "sha256-";
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return Digest::parse(std::string(name));
}

LocalTree::LocalTree(const std::string& directory) : readers_(kReader) {
  std::error_code error;
  const fs::path named = fs::canonical(directory, error);
  if (error) throw_file_error(error.value(), snapshot::printable(directory));
  const fs::path top = hub_repository(named).value_or(named);
  top_ = top.string();
  if (top != named) start_ = named.lexically_relative(top).string();
  fd_ = Fd(::open(top_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd_ && errno == ENOTDIR) {
    throw Error(Errc::kInvalid, snapshot::printable(directory) + " is not a directory");
  }
  if (!fd_) throw_file_error(errno, snapshot::printable(directory));
}

std::string LocalTree::full_path(const std::string& path) const {
  if (path.empty()) return top_;
  return (top_ == "/" ? "" : top_) + "/" + path;
}

Fd LocalTree::open(const File& file) const {
  Fd fd = open_beneath(fd_, file.path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
  if (!fd) throw_file_error(errno, snapshot::printable(full_path(file.path)));
  check_version(file, fd);
  // With O_NONBLOCK, io_uring would answer EAGAIN instead of waiting for the disk.
  ::fcntl(fd.value(), F_SETFL, 0);
  return fd;
}

void LocalTree::check_version(const File& file, const Fd& fd) {
  const struct stat status = status_of(fd, snapshot::printable(file.path));
  if (S_ISREG(status.st_mode) && is_version(file.version, status)) return;
  throw Error(Errc::kChanged, "it is " + version_of(status, InodeNumber::kStable) +
                                  " now and was " + file.version + " when it was found");
}

}  // namespace weightfs::source
