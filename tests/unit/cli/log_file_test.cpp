// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/log_file.hpp"

#include "../control/temporary_directory.hpp"
#include "base/error.hpp"
#include "base/file.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace weightfs;
using namespace weightfs::cli;
using weightfs::tests::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;

const ProcessUser kUser{.name = "somebody", .uid = ::geteuid(), .gid = ::getegid()};

void append(const Fd& log, std::string_view text) {
  REQUIRE(::write(log.value(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("a log is made once and appended to") {
  const TemporaryDirectory place;
  const fs::path path = place.path() / "log";
  append(open_log_file(path, kUser), "one ");
  append(open_log_file(path, kUser), "two");
  CHECK(read_file(path, 100) == "one two");
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0137) == 0);
}

TEST_CASE("a log does not lead to another file, nor wait") {
  const TemporaryDirectory place;
  const fs::path path = place.path() / "log";
  write_file_durably(place.path() / "precious", "data");
  SECTION("a symbolic link") {
    fs::create_symlink(place.path() / "precious", path);
  }
  SECTION("a symbolic link to what is not there") {
    fs::create_symlink(place.path() / "new", path);
  }
  SECTION("a second name") {
    fs::create_hard_link(place.path() / "precious", path);
  }
  SECTION("a pipe") {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  }
  CHECK_THROWS_AS(open_log_file(path, kUser), Error);
  CHECK(read_file(place.path() / "precious", 100) == "data");
  CHECK_FALSE(fs::exists(place.path() / "new"));
}

TEST_CASE("a log of a third user is left alone") {
  if (::geteuid() != 0) SKIP("giving files away needs root");
  const TemporaryDirectory place;
  const fs::path path = place.path() / "log";
  write_file_durably(path, "data");
  REQUIRE(::chown(path.c_str(), 54321, 54321) == 0);
  CHECK_THROWS_AS(open_log_file(path, kUser), Error);
  CHECK_NOTHROW(open_log_file(path, {.name = "owner", .uid = 54321, .gid = 54321}));
}
