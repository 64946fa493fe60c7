// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/mount_table.hpp"

#include "base/file.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <unistd.h>

namespace weightfs::keeper {
namespace {

TEST_CASE("a mount table is read with its escapes, tags and subtypes") {
  const auto entries = parse_mount_table(
      "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
      "36 22 98:0 /mnt1 /a\\040b\\134c rw,noatime master:1 shared:7 - ext3 /dev/root rw\n"
      "120 36 0:58 / /models ro,nosuid shared:9 - fuse.weightfs weightfs rw,user_id=0\n");
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].mountpoint == "/proc");
  CHECK_FALSE(entries[0].shared);
  CHECK(entries[1].id == 36);
  CHECK(entries[1].mountpoint == "/a b\\c");
  CHECK(entries[1].device == "98:0");
  CHECK(entries[1].shared);
  CHECK(entries[2].filesystem == "fuse.weightfs");
}

TEST_CASE("lines that make no sense are left out") {
  CHECK(parse_mount_table("").empty());
  CHECK(parse_mount_table("\n\nx y z\n12\n12 13 0:1 / /p rw\n12 13 0:1 / /p rw shared:1 -\n")
            .empty());
  CHECK(parse_mount_table("1 1 0:1 / /p\\0 rw - t s").size() == 1);
}

TEST_CASE("the place of a descriptor is its mount and its path without links") {
  const Fd proc(::open("/proc/self/", O_PATH | O_CLOEXEC));
  const auto place = place_of(proc.value());
  REQUIRE(place);
  CHECK(place->mount.filesystem == "proc");
  CHECK(place->mount.mountpoint == "/proc");
  CHECK(place->path == "/proc/" + std::to_string(::getpid()));
}

}  // namespace
}  // namespace weightfs::keeper
