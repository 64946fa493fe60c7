// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/reflink.hpp"

#include "../store/loop_filesystem.hpp"
#include "base/file.hpp"
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <optional>
#include <utility>

namespace weightfs::fetch {
namespace {

/// A file beside the store with the content that the source has for `path`.
Fd original(const FetchFixture& fixture, const std::string& path, std::uint64_t size) {
  const auto at = fixture.directory / "original";
  std::ofstream(at, std::ios::binary) << FakeSource::content(path, {0, size});
  return open_file(at, O_RDONLY);
}

using store::LoopFilesystem;

/// A disk with reflinks. Skips the test where there can be none: without root, without loop
/// devices, with a kernel that has no xfs. Whatever else goes wrong fails it.
std::unique_ptr<LoopFilesystem> reflink_disk() {
  const std::string reason = LoopFilesystem::unavailable(LoopFilesystem::Kind::kXfs);
  if (!reason.empty()) SKIP("no filesystem with reflinks: " << reason);
  return std::make_unique<LoopFilesystem>(300 << 20, LoopFilesystem::Kind::kXfs);
}

struct Disk {
  std::unique_ptr<LoopFilesystem> disk = reflink_disk();
};

/// With the store on such a disk, and the originals beside it.
class ReflinkFixture : private Disk, public FetchFixture {
 public:
  ReflinkFixture() : FetchFixture(disk->path()) {}
};

TEST_CASE_METHOD(ReflinkFixture,
                 "a file on the store's filesystem comes by reflink, and is verified") {
  source->local = [this](const snapshot::File& file) -> std::optional<Fd> {
    return original(*this, file.path, file.size);
  };
  start();
  snapshot::File file = FakeSource::file("a", 9 * kMiB + 5);
  file.validator = "1";  // or the header might be another version's
  const FillPtr fill = fetcher().fill(target(file));
  CHECK(reads_right(fill, {0, 100}));  // a header by request, a model by reflink
  CHECK(source->requests().size() == 1);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(source->requests().size() == 1);
  CHECK(reads_right(fill, {0, 9 * kMiB + 5}));
  CHECK(fetcher().counters().cloned_bytes == 9 * kMiB + 5);
}

TEST_CASE_METHOD(ReflinkFixture, "a reflink of something else is found out") {
  source->local = [this](const snapshot::File& file) -> std::optional<Fd> {
    return original(*this, "another", file.size);
  };
  start();
  const FillPtr fill = this->fill("a", kMiB);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return !observer.failed().empty(); }));
  CHECK(observer.failed() == std::vector{Errc::kCorrupt});
}

TEST_CASE_METHOD(ReflinkFixture, "a file that changes while it is cloned ends the fill") {
  const auto opens = std::make_shared<std::atomic<int>>(0);
  source->local = [this, opens](const snapshot::File& file) -> std::optional<Fd> {
    if ((*opens)++ > 0) throw Error(Errc::kChanged, "another file now");
    return original(*this, file.path, file.size);
  };
  start();
  const FillPtr fill = this->fill("a", kMiB);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return !observer.failed().empty(); }));
  CHECK(observer.failed() == std::vector{Errc::kChanged});
}

TEST_CASE_METHOD(ReflinkFixture, "where no reflink is to be had, the bytes are asked for") {
  SECTION("the source is remote") {
    source->local = [](const snapshot::File&) { return std::nullopt; };
  }
  SECTION("the source is on another filesystem") {
    source->local = [](const snapshot::File& file) -> std::optional<Fd> {
      Fd elsewhere(::memfd_create("original", MFD_CLOEXEC));
      return ::ftruncate(elsewhere.value(), static_cast<off_t>(file.size)) == 0
                 ? std::optional(std::move(elsewhere))
                 : std::nullopt;
    };
  }
  SECTION("the file has another size") {
    source->local = [this](const snapshot::File&) -> std::optional<Fd> {
      return original(*this, "a", 17);
    };
  }
  SECTION("the file cannot be opened") {
    source->local = [](const snapshot::File&) -> std::optional<Fd> {
      throw Error(Errc::kPermission, "no");
    };
  }
  start();
  const FillPtr fill = this->fill("a", kMiB);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  CHECK(source->delivered() == kMiB);
  CHECK(fetcher().counters().cloned_bytes == 0);
}

}  // namespace
}  // namespace weightfs::fetch
