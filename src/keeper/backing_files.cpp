// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/backing_files.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <cerrno>

namespace weightfs::keeper {

namespace {

/// The kernel's struct fuse_backing_map; the distributions' headers are older than it.
struct BackingMap {
  std::int32_t fd;
  std::uint32_t flags;
  std::uint64_t padding;
};
constexpr unsigned kFuseIoctls = 229;
constexpr unsigned long kBackingOpen = _IOW(kFuseIoctls, 1, BackingMap);
constexpr unsigned long kBackingClose = _IOW(kFuseIoctls, 2, std::uint32_t);

void require_readable_file(const Fd& file) {
  struct statx attributes;
  // DONT_SYNC: a network filesystem must not make the keeper wait.
  if (::statx(file.value(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &attributes) != 0) {
    throw_errno(errno, "stat a backing file");
  }
  if (!S_ISREG(attributes.stx_mode)) {
    throw Error(Errc::kInvalid, "only regular files can be passed through");
  }
  const int flags = ::fcntl(file.value(), F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0 || (flags & O_ACCMODE) != O_RDONLY) {
    throw Error(Errc::kInvalid, "a backing file must be open for reading only");
  }
}

[[noreturn]] void refused(int error) {
  switch (error) {
    case ENOTTY:
    case EOPNOTSUPP:
      throw Error(Errc::kUnsupported,
                  "this kernel has no FUSE passthrough (Linux 6.9 with CONFIG_FUSE_PASSTHROUGH)");
    case EPERM:
      throw Error(Errc::kUnsupported,
                  "the kernel does not allow passthrough on this mount: it was not agreed on when "
                  "the mount started, or the keeper has no CAP_SYS_ADMIN");
    case ELOOP:
      throw Error(Errc::kUnsupported,
                  "the store is on a stacked filesystem such as overlayfs, which cannot be passed "
                  "through: put it on ext4, xfs or another disk filesystem");
    case EINVAL:
      throw Error(Errc::kUnsupported, "the store's filesystem cannot be passed through");
    default:
      throw_errno(error, "register a backing file");
  }
}

}  // namespace

std::int32_t BackingFiles::open(const Fd& file) {
  require_readable_file(file);
  if (ids_.size() >= kMax) throw Error(Errc::kNoSpace, "too many backing files are open");
  const BackingMap map{.fd = file.value(), .flags = 0, .padding = 0};
  const int id = ::ioctl(fuse_.value(), kBackingOpen, &map);
  if (id <= 0) refused(id == 0 ? EIO : errno);
  ids_.insert(id);
  return id;
}

void BackingFiles::close(std::int32_t backing_id) {
  const auto found = ids_.find(backing_id);
  if (found == ids_.end()) {
    throw Error(Errc::kNotFound, "backing id " + std::to_string(backing_id) + " is not open");
  }
  ids_.erase(found);
  const auto id = static_cast<std::uint32_t>(backing_id);
  if (::ioctl(fuse_.value(), kBackingClose, &id) != 0) throw_errno(errno, "close a backing file");
}

}  // namespace weightfs::keeper
