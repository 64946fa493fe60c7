// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/tree_walk.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/manifest.hpp"
#include "source/file/file_error.hpp"
#include "source/file/open_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace weightfs::source {

namespace {

class Walk {
 public:
  Walk(const std::string& name, const std::stop_token& stop) : name_(name), stop_(stop) {}

  std::vector<FoundFile> run(const Fd& root) {
    Fd copy(::openat(root.value(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!copy) throw_file_error(errno, name_);
    struct stat status{};
    if (::fstat(copy.value(), &status) != 0) throw_file_error(errno, name_);
    enter(std::move(copy), status, "");
    return std::move(files_);
  }

 private:
  /// `prefix` is empty or ends with '/'.
  void enter(Fd fd, const struct stat& status, const std::string& prefix) {
    const bool is_inside_itself = std::ranges::any_of(above_, [&](const struct stat& ancestor) {
      return ancestor.st_dev == status.st_dev && ancestor.st_ino == status.st_ino;
    });
    if (is_inside_itself) refuse(prefix, "is a link to a directory that it is in");
    if (above_.size() >= kMaxWalkDepth) refuse(prefix, "is too deep");
    const OpenDirectory directory = open_directory(std::move(fd));
    if (!directory) throw_file_error(errno, full(prefix));

    above_.push_back(status);
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(directory.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || (prefix.empty() && name == "lost+found")) continue;
      take(::dirfd(directory.get()), entry->d_name, entry->d_type, prefix);
    }
    if (errno != 0) throw_file_error(errno, full(prefix));
    above_.pop_back();
  }

  void take(int directory, const char* name, unsigned char type, const std::string& prefix) {
    if (type != DT_REG && type != DT_DIR && type != DT_LNK && type != DT_UNKNOWN) return;
    if (stop_.stop_requested())
      throw Error(Errc::kCancelled, "listing " + name_ + " was cancelled");
    struct stat status{};
    if (::fstatat(directory, name, &status, 0) != 0) {
      return take_unreadable(directory, name, prefix, errno);
    }
    if (S_ISREG(status.st_mode)) {
      if (files_.size() >= snapshot::kMaxFiles) refuse(prefix, "has too many files below it");
      files_.push_back({prefix + name, status});
    } else if (S_ISDIR(status.st_mode)) {
      Fd fd(::openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!fd && errno == ENOENT) return;
      if (!fd) throw_file_error(errno, full(prefix + name));
      enter(std::move(fd), status, prefix + name + "/");
    }
  }

  void take_unreadable(int directory, const char* name, const std::string& prefix, int error) {
    struct stat link{};
    const bool exists = ::fstatat(directory, name, &link, AT_SYMLINK_NOFOLLOW) == 0;
    if (error == ENOENT && !exists) return;
    if (exists && S_ISLNK(link.st_mode) && (error == ENOENT || error == ELOOP)) {
      refuse(prefix + name, "is a symbolic link that leads nowhere");
    }
    throw_file_error(error, full(prefix + name));
  }

  [[nodiscard]] std::string full(const std::string& path) const {
    return snapshot::printable(path.empty() ? name_ : name_ + "/" + path);
  }
  [[noreturn]] void refuse(const std::string& path, const char* why) const {
    throw Error(Errc::kInvalid, full(path) + " " + why);
  }

  const std::string& name_;
  const std::stop_token& stop_;
  std::vector<struct stat> above_;  ///< the directories that the walk is in
  std::vector<FoundFile> files_;
};

}  // namespace

std::vector<FoundFile> walk_tree(const Fd& root, const std::string& name,
                                 const std::stop_token& stop) {
  return Walk(name, stop).run(root);
}

}  // namespace weightfs::source
