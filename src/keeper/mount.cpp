// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/mount.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "keeper/errand.hpp"
#include "keeper/mount_table.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>

namespace weightfs::keeper {

namespace {

constexpr std::chrono::milliseconds kProbePatience{2000};
constexpr int kMaxStacked = 64;

/// Opens the directory without sending a request to the filesystem that is mounted on it.
Fd open_place(const std::filesystem::path& path) {
  Fd place(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (place) return place;
  const int error = errno;
  if (error == ENOENT) {
    throw Error(Errc::kNotFound, "the mount point " + path.string() + " does not exist");
  }
  if (error == ENOTDIR) {
    throw Error(Errc::kInvalid, "the mount point " + path.string() + " is not a directory");
  }
  throw_errno(error, "open the mount point " + path.string());
}

Place locate(const Fd& descriptor, const std::filesystem::path& path) {
  if (std::optional<Place> place = place_of(descriptor.value())) return std::move(*place);
  throw Error(Errc::kBusy, path.string() + " was unmounted while it was being mounted");
}

/// What a GETATTR of the directory gives, as an errno; ETIMEDOUT if nobody answers. A child asks,
/// because the question cannot be taken back. The cache is not asked: it answers for the dead, too.
int probe(const Fd& directory) {
  Errand question([&directory]() -> Errand::Result {
    struct statx attributes;
    const int flags = AT_EMPTY_PATH | AT_STATX_FORCE_SYNC;
    const int result = ::statx(directory.value(), "", flags, STATX_BASIC_STATS, &attributes);
    return {.value = result == 0 ? 0 : errno};
  });
  if (!question.wait(kProbePatience)) return ETIMEDOUT;
  return static_cast<int>(question.value().value_or(EIO));
}

bool is_dead(int probed) {
  return probed == ENOTCONN || probed == ECONNABORTED || probed == ECONNREFUSED;
}

/// Detaches dead weightfs mounts from the place, one upon the other, until something else is there.
Place clear(const std::filesystem::path& mountpoint, const Log& log) {
  for (int stacked = 0; stacked < kMaxStacked; ++stacked) {
    const Fd directory = open_place(mountpoint);
    Place place = locate(directory, mountpoint);
    if (place.mount.filesystem != Mount::kFilesystem) return place;
    if (place.path != place.mount.mountpoint) {
      throw Error(Errc::kInvalid,
                  place.path + " lies inside the weightfs mounted on " + place.mount.mountpoint);
    }
    const int probed = probe(directory);
    if (!is_dead(probed)) {
      throw Error(Errc::kBusy, "a weightfs is already mounted on " + place.path +
                                   (probed == ETIMEDOUT ? " (it does not answer: its daemon is "
                                                          "starting, or hangs)"
                                                        : ""));
    }
    if (::umount2(place.path.c_str(), MNT_DETACH) != 0) {
      throw_errno(errno, "detach the dead weightfs from " + place.path);
    }
    log.warning("detached a dead weightfs from {}", place.path);
  }
  throw Error(Errc::kBusy, "too many dead mounts on " + mountpoint.string());
}

Fd open_fuse() {
  Fd fuse(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (fuse) return fuse;
  const int error = errno;
  if (error == ENOENT || error == ENXIO || error == ENODEV) {
    throw Error(Errc::kUnsupported,
                "there is no /dev/fuse: load the kernel module fuse, or pass the "
                "device into the container");
  }
  throw_errno(error, "open /dev/fuse");
}

/// Through the FUSE control filesystem, mounted for the occasion and nowhere:
/// /sys/fs/fuse/connections is empty in most containers.
bool abort_connection(const std::string& device) {
  const Fd context(::fsopen("fusectl", FSOPEN_CLOEXEC));
  if (!context || ::fsconfig(context.value(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return false;
  }
  const Fd root(::fsmount(context.value(), FSMOUNT_CLOEXEC, 0));
  const std::string name = device.substr(device.find(':') + 1) + "/abort";
  const Fd control(root ? ::openat(root.value(), name.c_str(), O_WRONLY | O_CLOEXEC) : -1);
  return control && ::write(control.value(), "1", 1) == 1;
}

}  // namespace

Mount::Mount(const std::filesystem::path& mountpoint, const std::string& source_name, Log log)
    : log_(std::move(log)) {
  if (::geteuid() != 0) throw Error(Errc::kPermission, "mounting needs root");
  const Place place = clear(mountpoint, log_);
  path_ = place.path;
  if (!place.mount.shared) {
    log_.debug("{} is not on a shared mount: other mount namespaces will not see it", path_);
  }
  fuse_ = open_fuse();
  const std::string options = fmt::format(
      "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", fuse_.value());
  constexpr unsigned long kFlags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOATIME;
  if (::mount(source_name.c_str(), path_.c_str(), kFilesystem, kFlags, options.c_str()) != 0) {
    const int error = errno;
    if (error == ENODEV) throw Error(Errc::kUnsupported, "this kernel has no FUSE");
    throw_errno(error, "mount on " + path_);
  }
  try {
    device_ = locate(open_place(path_), mountpoint).mount.device;
  } catch (...) {
    ::umount2(path_.c_str(), MNT_DETACH);
    throw;
  }
}

Mount::~Mount() {
  try {
    unmount(IfBusy::kDetach);
  } catch (const std::exception& error) {
    log_.error("{}", error.what());
  }
}

bool Mount::connected() const {
  pollfd state{.fd = fuse_.value(), .events = 0, .revents = 0};
  return ::poll(&state, 1, 0) <= 0 || (state.revents & POLLERR) == 0;
}

bool Mount::in_place() const {
  const Fd directory(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return false;
  const std::optional<Place> place = place_of(directory.value());
  return place && place->mount.device == device_ && place->mount.filesystem == kFilesystem;
}

void Mount::unmount(IfBusy busy) {
  if (!in_place()) return;
  if (::umount2(path_.c_str(), UMOUNT_NOFOLLOW) == 0) return;
  if (errno == EBUSY) {
    if (busy == IfBusy::kFail) {
      throw Error(Errc::kBusy, path_ + " is busy: files below it are open");
    }
    log_.info("{} is busy: detaching it, its open files stay", path_);
    if (::umount2(path_.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) return;
  }
  throw_errno(errno, "unmount " + path_);
}

void Mount::abort() {
  if (!connected() || abort_connection(device_)) return;
  // Aborts before it finds out whether it can unmount. Does not find a mount that was detached.
  if (in_place() && ::umount2(path_.c_str(), MNT_FORCE | UMOUNT_NOFOLLOW) != 0 && connected()) {
    log_.error("cannot abort the connection of {}", path_);
  }
}

void Mount::set_read_ahead(std::uint32_t kilobytes) {
  const std::string control = "/sys/class/bdi/" + device_ + "/read_ahead_kb";
  const std::string text = std::to_string(kilobytes);
  const Fd file(::open(control.c_str(), O_WRONLY | O_CLOEXEC));
  if (file && ::write(file.value(), text.data(), text.size()) > 0) {
    log_.debug("read-ahead of {} is {} KiB", path_, kilobytes);
  } else if (!std::exchange(warned_, true)) {
    log_.warning("cannot set {}: reads of files that are still filling use the kernel's default",
                 control);
  }
}

}  // namespace weightfs::keeper
