// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/mount.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "running_keeper.hpp"
#include "toy_daemon.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <future>
#include <string>

namespace weightfs::keeper::test {
namespace {

TEST_CASE("an aborted connection fails what waits and what comes") {
  require_fuse();
  const Workplace place;
  Mount mount(place.mountpoint(), "weightfs", Log::silent());
  auto waiting = std::async(std::launch::async, [&] {
    struct stat status{};
    return ::stat(place.mountpoint().c_str(), &status) == 0 ? 0 : errno;
  });
  CHECK(waiting.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  mount.abort();
  CHECK_FALSE(mount.connected());
  const int error = waiting.get();
  CHECK((error == ECONNABORTED || error == ENOTCONN));
  mount.abort();  // no harm
}

TEST_CASE("a mount that was detached can be aborted, too") {
  require_fuse();
  const Workplace place;
  Mount mount(place.mountpoint(), "weightfs", Log::silent());
  const Fd user = open_file(place.mountpoint(), O_PATH);
  mount.unmount(Mount::IfBusy::kDetach);
  CHECK(mount.connected());
  mount.abort();
  CHECK_FALSE(mount.connected());
}

TEST_CASE("a busy mount says so, and where") {
  require_fuse();
  const Workplace place;
  Mount mount(place.mountpoint(), "weightfs", Log::silent());
  const Fd user = open_file(place.mountpoint(), O_PATH);
  std::string said;
  try {
    mount.unmount(Mount::IfBusy::kFail);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kBusy);
    said = error.what();
  }
  CHECK(said == place.mountpoint().string() + " is busy: files below it are open");
}

}  // namespace
}  // namespace weightfs::keeper::test
