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

namespace weightfs::store {

namespace {

namespace fs = std::filesystem;

bool succeeds(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

void run(const std::string& command) {
  if (!succeeds(command)) throw Error(Errc::kIo, "failed: " + command);
}

}  // namespace

std::string LoopFilesystem::unavailable() {
  if (::geteuid() != 0) return "not root";
  if (!succeeds("PATH=$PATH:/sbin:/usr/sbin command -v mkfs.ext4")) return "no mkfs.ext4";
  if (!fs::exists("/dev/loop-control")) return "no loop devices";
  try {
    const LoopFilesystem probe(8 << 20);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

LoopFilesystem::LoopFilesystem() {
  fs::create_directory(mountpoint_);
}

LoopFilesystem::LoopFilesystem(std::uint64_t bytes) : LoopFilesystem() {
  write_text(image(), "");
  fs::resize_file(image(), bytes);
  run(fmt::format("PATH=$PATH:/sbin:/usr/sbin mkfs.ext4 -q -F -m 0 {}", image().string()));
  mount();
}

LoopFilesystem::~LoopFilesystem() {
  if (::umount(mountpoint_.c_str()) != 0) ::umount2(mountpoint_.c_str(), MNT_DETACH);
}

void LoopFilesystem::mount() {
  // A long commit interval: nothing reaches the disk but what was synced.
  run(fmt::format("mount -o loop,commit=300 {} {}", image().string(), mountpoint_.string()));
}

std::unique_ptr<LoopFilesystem> LoopFilesystem::after_power_cut() const {
  std::unique_ptr<LoopFilesystem> copy(new LoopFilesystem());
  run(fmt::format("cp --sparse=always {} {}", image().string(), copy->image().string()));
  copy->mount();
  return copy;
}

void LoopFilesystem::remount_read_only() {
  run(fmt::format("mount -o remount,ro {}", mountpoint_.string()));
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
