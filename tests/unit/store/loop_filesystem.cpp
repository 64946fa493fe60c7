// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "loop_filesystem.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <string_view>

namespace weightfs::store {

namespace {

namespace fs = std::filesystem;

bool succeeds(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

void run(const std::string& command) {
  if (!succeeds(command)) throw Error(Errc::kIo, "failed: " + command);
}

std::string_view name_of(LoopFilesystem::Kind kind) {
  return kind == LoopFilesystem::Kind::kXfs ? "xfs" : "ext4";
}

std::string_view command_of(LoopFilesystem::Kind kind) {
  switch (kind) {
    case LoopFilesystem::Kind::kExt4:
      break;
    case LoopFilesystem::Kind::kExt4WithoutExtents:
      return "mkfs.ext4 -q -F -m 0 -O ^extents,^64bit";
    case LoopFilesystem::Kind::kXfs:
      return "mkfs.xfs -q -f -m reflink=1";
  }
  return "mkfs.ext4 -q -F -m 0";
}

/// Asks for a mount that cannot succeed: the kernel loads a module that it needs for it, and
/// answers ENODEV where there is none.
bool kernel_has(std::string_view filesystem) {
  return ::mount("/dev/null", "/", std::string(filesystem).c_str(), 0, nullptr) != 0 &&
         errno != ENODEV;
}

}  // namespace

std::string LoopFilesystem::unavailable(Kind kind) {
  if (::geteuid() != 0) return "not root";
  if (!fs::exists("/dev/loop-control")) return "no loop devices";
  if (!kernel_has(name_of(kind))) return fmt::format("a kernel without {}", name_of(kind));
  return "";
}

LoopFilesystem::LoopFilesystem(Kind kind) : kind_(kind) {
  fs::create_directory(mountpoint_);
}

LoopFilesystem::LoopFilesystem(std::uint64_t bytes, Kind kind) : LoopFilesystem(kind) {
  write_text(image(), "");
  fs::resize_file(image(), bytes);
  make();
  mount();
}

void LoopFilesystem::make() const {
  run(fmt::format("PATH=$PATH:/sbin:/usr/sbin {} {}", command_of(kind_), image().string()));
}

void LoopFilesystem::replace() {
  const std::uintmax_t bytes = fs::file_size(image());
  ::umount2(mountpoint_.c_str(), MNT_DETACH);
  fs::remove(image());
  write_text(image(), "");
  fs::resize_file(image(), bytes);
  make();
  mount();
}

void LoopFilesystem::replace_by_copy() {
  const fs::path copy = image().concat(".copy");
  run(fmt::format("cp --sparse=always {} {}", image().string(), copy.string()));
  ::umount2(mountpoint_.c_str(), MNT_DETACH);
  fs::rename(copy, image());
  mount();
}

LoopFilesystem::~LoopFilesystem() {
  if (::umount(mountpoint_.c_str()) != 0) ::umount2(mountpoint_.c_str(), MNT_DETACH);
}

void LoopFilesystem::mount() {
  // ext4's long commit interval: nothing reaches the disk but what was synced.
  const std::string_view options = kind_ == Kind::kXfs ? "loop" : "loop,commit=300";
  run(fmt::format("mount -o {} {} {}", options, image().string(), mountpoint_.string()));
}

std::unique_ptr<LoopFilesystem> LoopFilesystem::after_power_cut() const {
  std::unique_ptr<LoopFilesystem> copy(new LoopFilesystem(kind_));
  run(fmt::format("cp --sparse=always {} {}", image().string(), copy->image().string()));
  copy->mount();
  return copy;
}

void LoopFilesystem::fill_up() const {
  const Fd fd = open_file(filler(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const std::string block(64 << 10, 'f');
  for (std::size_t size = block.size(); size >= 1;) {
    if (::write(fd.value(), block.data(), size) < 0) size /= 2;
  }
  // What is promised to a file but not allocated yet would be found as room by who comes next.
  if (::fsync(fd.value()) != 0) throw_errno(errno, "flush " + filler().string());
}

void LoopFilesystem::free_up() const {
  fs::remove(filler());
}

void LoopFilesystem::remount_read_only() {
  run(fmt::format("mount -o remount,ro {}", mountpoint_.string()));
}

void LoopFilesystem::abort() {
  // Done, and then refused: the kernel will not remount what it has just given up.
  static_cast<void>(succeeds(fmt::format("mount -o remount,abort {}", mountpoint_.string())));
}

void LoopFilesystem::fail() {
  const Fd fd = open_file(mountpoint_, O_RDONLY | O_DIRECTORY);
  constexpr unsigned long kShutdown = _IOR('X', 125, std::uint32_t);  // linux/ext4.h since 6.7
  const std::uint32_t no_log_flush = 2;
  if (::ioctl(fd.value(), kShutdown, &no_log_flush) != 0)
    throw_errno(errno, "shut a filesystem down");
}

void LoopFilesystem::forget_pages(const fs::path& file) {
  const Fd fd = open_file(file, O_RDONLY);
  ::posix_fadvise(fd.value(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace weightfs::store
