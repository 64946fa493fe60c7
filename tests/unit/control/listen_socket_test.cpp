// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/listen_socket.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "temporary_directory.hpp"

#include <catch2/catch_test_macros.hpp>

#include <sys/stat.h>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

using namespace weightfs;
using namespace weightfs::control;

namespace {

template <class Call>
std::optional<Errc> error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a listening socket has its mode, missing parents are made, and its file goes with it") {
  const tests::TemporaryDirectory directory;
  const auto path = directory.path() / "a" / "b" / "control.sock";
  {
    const ListenSocket socket(path, 0660);
    struct stat found{};
    REQUIRE(::lstat(path.c_str(), &found) == 0);
    CHECK(S_ISSOCK(found.st_mode));
    CHECK((found.st_mode & 0777) == 0660);
    CHECK(connect_unix(path));
    CHECK(std::distance(std::filesystem::directory_iterator(path.parent_path()), {}) == 1);
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(error_of([&] { (void)connect_unix(path); }) == Errc::kUnavailable);
}

TEST_CASE("the mode of a socket does not depend on the umask, which stays what it was") {
  const tests::TemporaryDirectory directory;
  const auto path = directory.path() / "s";
  const mode_t before = ::umask(0077);
  const ListenSocket socket(path, 0660);
  CHECK(::umask(before) == 0077);
  struct stat found{};
  REQUIRE(::lstat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0660);
}

TEST_CASE("a living listener is left alone, a dead one's file is replaced") {
  const tests::TemporaryDirectory directory;
  const auto path = directory.path() / "s";
  const auto kept = directory.path() / "kept";
  {
    const ListenSocket socket(path, 0600);
    CHECK(error_of([&] { ListenSocket(path, 0600); }) == Errc::kBusy);
    CHECK(connect_unix(path));
    std::filesystem::rename(path, kept);  // what a killed process leaves behind
  }
  std::filesystem::rename(kept, path);
  CHECK(error_of([&] { (void)connect_unix(path); }) == Errc::kUnavailable);
  const ListenSocket next(path, 0600);
  CHECK(connect_unix(path));
}

TEST_CASE("a file that took the place of ours is not removed") {
  const tests::TemporaryDirectory directory;
  const auto path = directory.path() / "s";
  {
    const ListenSocket socket(path, 0600);
    std::filesystem::remove(path);
    write_file_durably(path, "somebody else's");
  }
  CHECK(std::filesystem::exists(path));
}

TEST_CASE("paths that cannot be sockets are refused") {
  const tests::TemporaryDirectory directory;
  const auto file = directory.path() / "file";
  write_file_durably(file, "data");
  CHECK(error_of([&] { ListenSocket(file, 0600); }) == Errc::kInvalid);
  CHECK(read_file(file, 10) == "data");
  CHECK(error_of([&] { ListenSocket(directory.path() / std::string(108, 'x'), 0600); }) ==
        Errc::kInvalid);
  CHECK(error_of([&] { ListenSocket("", 0600); }) == Errc::kInvalid);
  CHECK(error_of([&] { ListenSocket(file / "s", 0600); }).has_value());
}

TEST_CASE("a queue that is full is busy, and nobody waits for it") {
  const tests::TemporaryDirectory directory;
  const auto path = directory.path() / "s";
  const ListenSocket socket(path, 0600);
  std::vector<Fd> queue;
  std::optional<Errc> error;
  while (!error && queue.size() < 1000) {
    error = error_of([&] { queue.push_back(connect_unix(path)); });
  }
  CHECK(error == Errc::kBusy);
  CHECK(error_of([&] { ListenSocket(path, 0600); }) == Errc::kBusy);
}
