// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "keeper/keeper.hpp"
#include "keeper/keeper_client.hpp"
#include "temporary_directory.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>

namespace weightfs::keeper::test {

/// Skips the test, with the reason, where one cannot mount.
void require_fuse();

/// Polls until `condition` holds; false after `patience`.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds patience = std::chrono::seconds(10));

/// How many mounts of ours are on the path, one upon the other.
std::size_t mounts_on(const std::filesystem::path& path);

/// Detaches what is mounted on the path, whoever failed to.
void detach_all(const std::filesystem::path& path);

/// A directory with a mount point "mnt" whose mounts go with it.
class Workplace : public TemporaryDirectory {
 public:
  Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace();

  [[nodiscard]] std::filesystem::path mountpoint() const { return *this / "mnt"; }
  [[nodiscard]] std::filesystem::path socket() const { return *this / "keeper.sock"; }
  /// A keeper that waits for daemons at socket().
  [[nodiscard]] KeeperOptions options() const {
    return {.mountpoint = mountpoint(), .socket = socket()};
  }
  /// A keeper that starts `command` itself.
  [[nodiscard]] KeeperOptions supervising(std::vector<std::string> command) const {
    return {.mountpoint = mountpoint(), .daemon_command = std::move(command)};
  }
};

/// A keeper and the thread that it runs on. Destruction stops it.
class RunningKeeper {
 public:
  explicit RunningKeeper(KeeperOptions options);
  RunningKeeper(const RunningKeeper&) = delete;
  RunningKeeper& operator=(const RunningKeeper&) = delete;
  ~RunningKeeper();

  void stop();
  /// What run() returned; nothing if it still runs after `patience`.
  std::optional<int> result(std::chrono::milliseconds patience = std::chrono::seconds(20));

 private:
  Keeper keeper_;
  Fd stop_;
  std::shared_future<int> running_;
};

}  // namespace weightfs::keeper::test
