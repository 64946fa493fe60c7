// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/backing_files.hpp"

#include "base/error.hpp"
#include "keeper/protocol.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <cerrno>
#include <utility>

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

/// What the child says instead of an id or -errno of the ioctl.
enum Refusal : std::int64_t { kNotOneDescriptor = -10'000, kNotRegular, kNotForReading };

std::int64_t register_file(int file, int fuse) noexcept {
  struct statx attributes;
  // DONT_SYNC: the question is not passed on to a filesystem that may not answer.
  if (::statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &attributes) != 0 ||
      !S_ISREG(attributes.stx_mode)) {
    return kNotRegular;
  }
  const int flags = ::fcntl(file, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0 || (flags & O_ACCMODE) != O_RDONLY) return kNotForReading;
  const BackingMap map{.fd = file, .flags = 0, .padding = 0};
  const int id = ::ioctl(fuse, kBackingOpen, &map);
  return id > 0 ? id : id == 0 ? -EIO : -errno;
}

[[noreturn]] void refused(std::int64_t value) {
  if (value == kNotRegular) {
    throw Error(Errc::kInvalid, "only regular files can be passed through");
  }
  if (value == kNotForReading) {
    throw Error(Errc::kInvalid, "a backing file must be open for reading only");
  }
  const int error = static_cast<int>(-value);
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

std::optional<std::int32_t> BackingFiles::open_next(int socket) {
  std::optional<Errand> child;
  try {
    refuse_while_stuck();
    if (ids_.size() >= kMax) throw Error(Errc::kNoSpace, "too many backing files are open");
    child.emplace([socket, fuse = fuse_.value()]() -> Errand::Result {
      const int file = take_descriptor(socket);
      if (file < 0) return {.value = kNotOneDescriptor};
      return {.value = register_file(file, fuse), .closed_last = file};
    });
  } catch (...) {
    drop_message(socket);
    throw;
  }
  if (!child->wait(kPatience)) {
    stuck_.emplace(std::move(*child));
    return std::nullopt;
  }
  const std::optional<std::int64_t> value = child->value();
  if (!value || *value == kNotOneDescriptor) return std::nullopt;
  if (*value <= 0) refused(*value);
  const auto id = static_cast<std::int32_t>(*value);
  ids_.insert(id);
  return id;
}

// One that got through in the end may have registered a file, of which nobody knows.
void BackingFiles::refuse_while_stuck() {
  if (!stuck_) return;
  if (!stuck_->wait(std::chrono::milliseconds(0))) {
    throw Error(Errc::kBusy, "the keeper waits for a backing file that it was given");
  }
  const std::int64_t value = stuck_->value().value_or(0);
  stuck_.reset();
  if (value <= 0) return;
  ids_.insert(static_cast<std::int32_t>(value));
  close(static_cast<std::int32_t>(value));
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
