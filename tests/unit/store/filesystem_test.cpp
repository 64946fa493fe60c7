// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/filesystem.hpp"

#include "base/error.hpp"
#include "store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <linux/magic.h>

using namespace weightfs;
using namespace weightfs::store;

TEST_CASE("filesystems of other machines are told from local ones") {
  for (const unsigned long magic :
       {static_cast<unsigned long>(NFS_SUPER_MAGIC), static_cast<unsigned long>(SMB2_SUPER_MAGIC),
        static_cast<unsigned long>(CIFS_SUPER_MAGIC), static_cast<unsigned long>(SMB_SUPER_MAGIC),
        static_cast<unsigned long>(CEPH_SUPER_MAGIC), static_cast<unsigned long>(FUSE_SUPER_MAGIC),
        static_cast<unsigned long>(V9FS_MAGIC), static_cast<unsigned long>(OCFS2_SUPER_MAGIC),
        static_cast<unsigned long>(CODA_SUPER_MAGIC), static_cast<unsigned long>(AFS_FS_MAGIC),
        0x0BD00BD0UL, 0x47504653UL}) {
    CAPTURE(magic);
    CHECK(classify_filesystem(magic).kind == FilesystemKind::kNetwork);
  }
  for (const unsigned long magic :
       {static_cast<unsigned long>(EXT4_SUPER_MAGIC), static_cast<unsigned long>(XFS_SUPER_MAGIC),
        static_cast<unsigned long>(BTRFS_SUPER_MAGIC), static_cast<unsigned long>(F2FS_SUPER_MAGIC),
        0x12345UL}) {
    CAPTURE(magic);
    CHECK(classify_filesystem(magic).kind == FilesystemKind::kLocal);
  }
  CHECK(classify_filesystem(TMPFS_MAGIC).kind == FilesystemKind::kMemory);
  CHECK(classify_filesystem(RAMFS_MAGIC).kind == FilesystemKind::kMemory);
  CHECK(classify_filesystem(OVERLAYFS_SUPER_MAGIC).kind == FilesystemKind::kOverlay);
  CHECK(classify_filesystem(NFS_SUPER_MAGIC).name == "nfs");
}

TEST_CASE("the filesystem and the space of a real directory are found") {
  CHECK(filesystem_of("/proc").name == "unknown");
  const Space space = space_of("/");
  CHECK(space.capacity > 0);
  CHECK(space.free <= space.capacity);
  CHECK_THROWS_AS(filesystem_of("/no/such/directory"), Error);
  CHECK_THROWS_AS(space_of("/no/such/directory"), Error);
}

TEST_CASE("a store on tmpfs works") {
  std::error_code error;
  if (!std::filesystem::exists("/dev/shm", error) || filesystem_of("/dev/shm").name != "tmpfs") {
    SKIP("/dev/shm is no tmpfs here");
  }
  const TemporaryDirectory directory("/dev/shm");
  const ManualClock clock;
  Digest digest;
  {
    const auto store = open_volume(directory.path(), clock);
    digest = put(*store, "on tmpfs").digest;
  }
  const auto store = open_volume(directory.path(), clock);
  REQUIRE(store->find(digest));
  CHECK(content_of(*store->find(digest)) == "on tmpfs");
  CHECK(store->verify(digest, nullptr) == VerifyOutcome::kIntact);
}
