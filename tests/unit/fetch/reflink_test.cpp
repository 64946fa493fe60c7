// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/reflink.hpp"

#include "base/file.hpp"
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <fstream>

namespace weightfs::fetch {
namespace {

/// A file beside the store with the content that the source has for `path`.
Fd original(const FetchFixture& fixture, const std::string& path, std::uint64_t size) {
  const auto at = fixture.directory / "original";
  std::ofstream(at, std::ios::binary) << FakeSource::content(path, {0, size});
  return open_file(at, O_RDONLY);
}

bool can_reflink(const FetchFixture& fixture) {
  const Fd from = original(fixture, "probe", 4096);
  const Fd to = open_file(fixture.directory / "probe", O_RDWR | O_CREAT, 0600);
  return ::ioctl(to.value(), FICLONE, from.value()) == 0;
}

TEST_CASE_METHOD(FetchFixture,
                 "a file on the store's filesystem comes by reflink, and is verified") {
  if (!can_reflink(*this)) SKIP("no reflink on the filesystem of " << directory);
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

TEST_CASE_METHOD(FetchFixture, "a reflink of something else is found out") {
  if (!can_reflink(*this)) SKIP("no reflink on the filesystem of " << directory);
  source->local = [this](const snapshot::File& file) -> std::optional<Fd> {
    return original(*this, "another", file.size);
  };
  start();
  const FillPtr fill = this->fill("a", kMiB);
  fill->want(Want::kFile);
  REQUIRE(eventually([&] { return !observer.failed().empty(); }));
  CHECK(observer.failed() == std::vector{Errc::kCorrupt});
}

TEST_CASE_METHOD(FetchFixture, "a file that changes while it is cloned ends the fill") {
  if (!can_reflink(*this)) SKIP("no reflink on the filesystem of " << directory);
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

TEST_CASE_METHOD(FetchFixture, "where no reflink is to be had, the bytes are asked for") {
  SECTION("the source is elsewhere") {
    source->local = [](const snapshot::File&) { return std::nullopt; };
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
}

}  // namespace
}  // namespace weightfs::fetch
