// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "source/file/beneath.hpp"
#include "source/file/file_error.hpp"
#include "source/file/file_version.hpp"
#include "source/file/local_tree.hpp"
#include "source/file/open_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <climits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace weightfs::source {

namespace {

/// What the link itself says; empty if it cannot be told.
std::string link_target(int directory, const char* name) {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t length = ::readlinkat(directory, name, buffer.data(), buffer.size());
  return length < 0 ? "" : std::string(buffer.data(), static_cast<std::size_t>(length));
}

}  // namespace

class LocalTreeWalk {
 public:
  LocalTreeWalk(const LocalTree& tree, const LocalTree::Search& search, const std::stop_token& stop)
      : tree_(tree), search_(search), stop_(stop) {}

  LocalTree::Listing run() {
    Fd start = open_beneath(tree_.fd_, tree_.start_, O_RDONLY | O_DIRECTORY);
    if (!start && errno == ENOSYS) {
      throw Error(Errc::kUnsupported, "this kernel has no openat2(2): Linux 5.6 is needed");
    }
    if (!start) throw_file_error(errno, full(tree_.start_));
    const std::string prefix = tree_.start_.empty() ? "" : tree_.start_ + "/";
    enter(std::move(start), prefix, 0);
    for (auto& [key, file] : found_) listing_.files.push_back(std::move(file));
    return std::move(listing_);
  }

 private:
  using Key = std::pair<dev_t, ino_t>;

  [[nodiscard]] std::string full(const std::string& path) const {
    return snapshot::printable(tree_.full_path(path));
  }

  void enter(Fd fd, const std::string& prefix, std::size_t depth) {
    if (depth >= kMaxWalkDepth) throw Error(Errc::kInvalid, full(prefix) + " is too deep");
    const InodeNumber inode_number = inode_number_of(fd);
    const OpenDirectory directory = open_directory(std::move(fd));
    if (!directory) throw_file_error(errno, full(prefix));
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(directory.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (stop_.stop_requested()) throw Error(Errc::kCancelled, "the daemon is stopping");
      if (++entries_ > LocalTree::kMostEntries) {
        throw Error(Errc::kInvalid, full("") + " has too many files below it");
      }
      take(::dirfd(directory.get()), entry->d_name, prefix, inode_number, depth);
    }
    if (errno != 0) unreadable(prefix, errno);
  }

  void take(int directory, const char* name, const std::string& prefix, InodeNumber inode_number,
            std::size_t depth) {
    const std::string path = prefix + name;
    struct stat status{};
    if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) {
      if (errno != ENOENT) unreadable(path, errno);
      return;
    }
    if (S_ISREG(status.st_mode)) {
      note(path, path, status, inode_number);
    } else if (S_ISLNK(status.st_mode)) {
      follow(directory, name, path);
    } else if (S_ISDIR(status.st_mode)) {
      if (search_.is_spared(status)) return;
      Fd fd(::openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (fd) return enter(std::move(fd), path + "/", depth + 1);
      if (errno != ENOENT) unreadable(path, errno);
    } else {
      ++listing_.passed_over;
    }
  }

  void follow(int directory, const char* name, const std::string& path) {
    const Fd fd = open_beneath(tree_.fd_, path, O_PATH);
    struct stat status{};
    if (!fd || ::fstat(fd.value(), &status) != 0) {
      ++listing_.passed_over;
    } else if (S_ISREG(status.st_mode)) {
      note(path, link_target(directory, name), status, inode_number_of(fd));
    } else if (!S_ISDIR(status.st_mode)) {
      ++listing_.passed_over;
    }
  }

  /// `named`: whose last component may say what is in it.
  void note(const std::string& path, const std::string& named, const struct stat& status,
            InodeNumber inode_number) {
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const bool wanted = search_.is_wanted(size);
    const Key key(status.st_dev, status.st_ino);
    // On FUSE different files may have the same number.
    const bool same = inode_number == InodeNumber::kStable;
    if (!wanted) {
      if (same && status.st_nlink > 1 && !others_.insert(key).second) return;
      ++listing_.others;
      listing_.other_bytes += size;
      return;
    }
    LocalTree::File file{.path = path,
                         .size = size,
                         .version = version_of(status, inode_number),
                         .claimed = claimed_digest(named)};
    if (!same) return listing_.files.push_back(std::move(file));
    const auto [known, added] = found_.try_emplace(key, file);
    if (!added && !known->second.claimed && file.claimed) known->second = std::move(file);
  }

  void unreadable(const std::string& path, int error) {
    try {
      throw_file_error(error, full(path));
    } catch (const Error& told) {
      listing_.unreadable.push_back({path, told});
    }
  }

  const LocalTree& tree_;
  const LocalTree::Search& search_;
  const std::stop_token& stop_;
  std::uint64_t entries_ = 0;
  std::map<Key, LocalTree::File> found_;
  std::set<Key> others_;  ///< files of several names that are counted
  LocalTree::Listing listing_;
};

LocalTree::Listing LocalTree::list(const Search& search, const std::stop_token& stop) const {
  return LocalTreeWalk(*this, search, stop).run();
}

}  // namespace weightfs::source
