// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "running_keeper.hpp"

#include "base/file.hpp"
#include "keeper/mount.hpp"
#include "keeper/mount_table.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <thread>

namespace weightfs::keeper::test {

void require_fuse() {
  if (::geteuid() != 0) SKIP("mounting needs root");
  if (!Fd(::open("/dev/fuse", O_RDWR | O_CLOEXEC))) SKIP("there is no usable /dev/fuse");
}

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

std::size_t mounts_on(const std::filesystem::path& path) {
  const auto table = parse_mount_table(read_file("/proc/self/mountinfo", 64 << 20));
  return static_cast<std::size_t>(std::count_if(table.begin(), table.end(), [&](const auto& entry) {
    return entry.mountpoint == path && entry.filesystem == Mount::kFilesystem;
  }));
}

void detach_all(const std::filesystem::path& path) {
  while (::umount2(path.c_str(), MNT_DETACH) == 0) {
  }
}

Workplace::Workplace() {
  std::filesystem::create_directory(mountpoint());
}
Workplace::~Workplace() {
  detach_all(mountpoint());
}

RunningKeeper::RunningKeeper(KeeperOptions options)
    : keeper_(std::move(options),
              std::getenv("WEIGHTFS_TEST_LOG") ? Log::to_stderr(LogLevel::kDebug) : Log::silent()),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      running_(std::async(std::launch::async, [this] { return keeper_.run(stop_.value()); })) {
}

RunningKeeper::~RunningKeeper() {
  stop();
}

void RunningKeeper::stop() {
  const std::uint64_t one = 1;
  if (::write(stop_.value(), &one, sizeof one) < 0) std::abort();
}

std::optional<int> RunningKeeper::result(std::chrono::milliseconds patience) {
  if (running_.wait_for(patience) != std::future_status::ready) return std::nullopt;
  return running_.get();
}

}  // namespace weightfs::keeper::test
