// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/index.hpp"

#include "base/error.hpp"
#include "store/index_damaged.hpp"
#include "store_fixture.hpp"

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <thread>

using namespace weightfs;
using namespace weightfs::store;

namespace {

IndexRow row(const std::string& name, std::uint64_t size = 10) {
  return {.digest = Digest::of(name),
          .identity = {.size = size, .mtime_ns = -5, .inode = ~std::uint64_t{0}},
          .created = 100,
          .last_used = 100,
          .verified_boot = 7};
}

struct Place {
  TemporaryDirectory directory;
  std::filesystem::path path = directory.path() / "index.db";

  [[nodiscard]] std::unique_ptr<Index> create() const {
    auto index = Index::create(path, "root");
    index->finish_rebuild();
    return index;
  }
};

void publish(Index& index, const IndexRow& added) {
  index.begin_publish(added, Index::Durability::kFlushed);
  index.end_publish(added.digest);
}

}  // namespace

TEST_CASE("a row is found once it is published, with every value") {
  const Place place;
  const auto index = place.create();
  index->begin_publish(row("a"), Index::Durability::kFlushed);
  CHECK_FALSE(index->find(Digest::of("a")));
  CHECK(index->unpublished().size() == 1);
  CHECK(index->totals().blobs == 0);
  index->end_publish(Digest::of("a"));
  const auto found = index->find(Digest::of("a"));
  REQUIRE(found);
  CHECK(found->digest == Digest::of("a"));
  CHECK(found->identity == row("a").identity);
  CHECK(found->created == 100);
  CHECK(found->last_used == 100);
  CHECK(found->verified_boot == 7);
  CHECK(index->unpublished().empty());
  CHECK_FALSE(index->find(Digest::of("b")));
}

TEST_CASE("totals follow every change") {
  const Place place;
  const auto index = place.create();
  publish(*index, row("a", 10));
  publish(*index, row("b", 20));
  CHECK(index->totals().blobs == 2);
  CHECK(index->totals().bytes == 30);
  publish(*index, row("a", 15));
  CHECK(index->totals().blobs == 2);
  CHECK(index->totals().bytes == 35);
  index->begin_remove(Digest::of("b"));
  CHECK(index->totals().blobs == 1);
  CHECK(index->totals().bytes == 15);
  CHECK_FALSE(index->find(Digest::of("b")));
  CHECK(index->unpublished().size() == 1);
  index->end_publish(Digest::of("b"));
  CHECK(index->totals().bytes == 35);
  index->begin_publish(row("b", 1), Index::Durability::kLazy);
  CHECK(index->totals().bytes == 15);
  index->remove(Digest::of("b"));
  index->remove(Digest::of("b"));
  index->end_publish(Digest::of("nobody"));
  CHECK(index->totals().blobs == 1);
  index->add_found(std::vector<IndexRow>{row("c", 1), row("d", 2)});
  CHECK(index->totals().blobs == 3);
  CHECK(index->totals().bytes == 18);
}

TEST_CASE("uses and verifications are recorded, and a use never goes back in time") {
  const Place place;
  const auto index = place.create();
  publish(*index, row("a"));
  index->set_verified(Digest::of("a"), 99);
  index->set_last_used(std::vector<std::pair<Digest, std::int64_t>>{
      {Digest::of("a"), 200}, {Digest::of("gone"), 300}, {Digest::of("a"), 150}});
  CHECK(index->find(Digest::of("a"))->verified_boot == 99);
  CHECK(index->find(Digest::of("a"))->last_used == 200);
}

TEST_CASE("blobs are listed in pages") {
  const Place place;
  const auto index = place.create();
  std::vector<IndexRow> rows;
  std::vector<Digest> expected;
  for (int i = 0; i < 25; ++i) {
    rows.push_back(row(std::to_string(i)));
    expected.push_back(rows.back().digest);
  }
  std::sort(expected.begin(), expected.end());
  index->add_found(rows);
  std::vector<Digest> listed;
  std::optional<Digest> last;
  for (;;) {
    const auto page = index->list(last, 10);
    listed.insert(listed.end(), page.begin(), page.end());
    if (page.size() < 10) break;
    last = page.back();
  }
  CHECK(listed == expected);
}

TEST_CASE("an index is opened again if it is whole, of this version and of this directory") {
  const Place place;
  CHECK(Index::open(place.path, "root") == nullptr);
  {
    publish(*place.create(), row("a"));
  }
  {
    const auto index = Index::open(place.path, "root");
    REQUIRE(index);
    CHECK(index->find(Digest::of("a")));
    CHECK(index->totals().blobs == 1);
  }
  CHECK(Index::open(place.path, "elsewhere") == nullptr);
  {
    (void)Index::create(place.path, "root");
  }
  CHECK(Index::open(place.path, "root") == nullptr);
}

TEST_CASE("an index that is damaged is none") {
  const Place place;
  {
    publish(*place.create(), row("a"));
  }
  const std::string good = read_text(place.path);
  write_text(place.path, "this is no database, whatever its name says" + std::string(5000, 'x'));
  CHECK(Index::open(place.path, "root") == nullptr);
  write_text(place.path, "");
  CHECK(Index::open(place.path, "root") == nullptr);
  std::string bad = good;
  std::fill(bad.begin() + 100, bad.begin() + 4000, '\xAA');
  write_text(place.path, bad);
  CHECK(Index::open(place.path, "root") == nullptr);
  const auto index = place.create();
  CHECK(index->totals().blobs == 0);
}

TEST_CASE("damage that shows later makes the next open rebuild") {
  const Place place;
  {
    const auto index = place.create();
    std::vector<IndexRow> rows;
    for (int i = 0; i < 5000; ++i) rows.push_back(row(std::to_string(i)));
    index->add_found(rows);
  }
  std::string bytes = read_text(place.path);
  REQUIRE(bytes.size() > 100'000);
  // Whatever is behind the schema's pages: the leaves of the table.
  std::fill(bytes.begin() + 10 * 4096, bytes.end(), '\x55');
  write_text(place.path, bytes);
  const auto index = Index::open(place.path, "root");
  REQUIRE(index);
  bool damaged = false;
  for (int i = 0; i < 5000 && !damaged; ++i) {
    try {
      (void)index->find(Digest::of(std::to_string(i)));
    } catch (const IndexDamaged&) {
      damaged = true;
    }
  }
  CHECK(damaged);
  CHECK(Index::open(place.path, "root") == nullptr);
}

TEST_CASE("readers go on while a writer writes") {
  const Place place;
  const auto index = place.create();
  publish(*index, row("a"));
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 40; ++i) publish(*index, row(fmt::format("{}-{}", thread, i)));
      });
      threads.emplace_back([&] {
        for (int i = 0; i < 2000; ++i) {
          if (!index->find(Digest::of("a"))) throw std::runtime_error("lost");
        }
      });
    }
  }
  CHECK(index->totals().blobs == 81);
}

TEST_CASE("a boot has a number of its own, and never the one that means never") {
  CHECK(boot_number("a") != boot_number("b"));
  CHECK(boot_number("a") == boot_number("a"));
  CHECK(boot_number("") != 0);
}

TEST_CASE("a hundred thousand blobs cost a find no more than a few pages") {
  const Place place;
  const auto index = place.create();
  std::vector<IndexRow> rows;
  for (int i = 0; i < 100'000; ++i) rows.push_back(row(std::to_string(i)));
  index->add_found(rows);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10'000; ++i) {
    if (!index->find(rows[static_cast<std::size_t>(i) * 9].digest)) FAIL("lost");
  }
  const auto taken = std::chrono::steady_clock::now() - start;
  CAPTURE(std::chrono::duration_cast<std::chrono::microseconds>(taken).count());
  CHECK(taken < std::chrono::seconds(5));
}

TEST_CASE("an index that somebody has locked for ever goes on as a copy") {
  const Place place;
  const auto locked = place.create();
  publish(*locked, row("a"));
  publish(*locked, row("b"));
  Index::leave_locks_behind(place.path);
  const auto copy = Index::open(place.path, "root");
  REQUIRE(copy);
  CHECK(copy->find(Digest::of("a")));
  CHECK(copy->totals().blobs == 2);
  publish(*copy, row("c"));
  CHECK_FALSE(locked->find(Digest::of("c")));
  CHECK_FALSE(std::filesystem::exists(place.path.string() + ".tmp"));
}
