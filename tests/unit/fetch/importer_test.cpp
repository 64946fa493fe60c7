// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/importer.hpp"

#include "fetch_fixture.hpp"

#include <sys/stat.h>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weightfs::fetch {
namespace {

using Outcome = Importer::Outcome;

/// A directory beside the store, and what an import of it does.
class ImportFixture : public FetchFixture {
 public:
  ImportFixture() { std::filesystem::create_directories(folder()); }

  [[nodiscard]] std::filesystem::path folder() const { return directory / "found"; }
  void put(const std::string& name, const std::string& content) const {
    std::ofstream(folder() / name, std::ios::binary) << content;
  }
  void want(const std::string& path, std::uint64_t size) {
    wanted.add(target(path, size).snapshot, source);
  }
  static std::string content(const std::string& path, std::uint64_t size) {
    return FakeSource::content(path, {0, size});
  }

  void list() {
    tree = std::make_shared<source::LocalTree>(folder().string());
    listing = tree->list({.is_wanted = [&](std::uint64_t size) { return wanted.has_size(size); },
                          .is_spared = [](const struct stat&) { return false; }},
                         {});
  }
  /// The outcomes by path.
  std::map<std::string, Outcome> run(const Importer::Options& import_options = {}) {
    Synchronized<std::map<std::string, Outcome>> outcomes;
    Importer importer(
        {.fetcher = fetcher(),
         .store = *store,
         .wanted = wanted,
         .tree = tree,
         .admit = admit,
         .on_file =
             [&](const Importer::Imported& imported) {
               outcomes.with([&](auto& all) { all.emplace(imported.file.path, imported.outcome); });
               if (imported.error)
                 codes.with([&](auto& all) { all.push_back(imported.error->code()); });
             },
         .on_bytes = [&](std::uint64_t bytes) { handled += bytes; }},
        import_options);
    importer.run(listing.files, {});
    return outcomes.with([](const auto& all) { return all; });
  }

  WantedFiles wanted;
  std::shared_ptr<source::LocalTree> tree;
  source::LocalTree::Listing listing;
  std::function<void(const snapshot::SnapshotPtr&)> admit = [](const snapshot::SnapshotPtr&) {};
  Synchronized<std::vector<Errc>> codes;
  std::atomic<std::uint64_t> handled = 0;
};

using Outcomes = std::map<std::string, Outcome>;

TEST_CASE_METHOD(ImportFixture, "files are known by size and digest, whatever their names are") {
  start();
  want("a", 9 * kMiB + 5);
  want("b", 4096);
  put("one", content("a", 9 * kMiB + 5));
  put("two", content("b", 4096));
  put("of the same size", content("c", 4096));
  put("of another", "x");
  list();
  CHECK(listing.others == 1);
  const auto outcomes = run();
  CHECK(outcomes.at("of the same size") == Outcome::kUnknown);
  for (const char* const name : {"one", "two"}) {
    const bool taken =
        outcomes.at(name) == Outcome::kCopied || outcomes.at(name) == Outcome::kReflinked;
    CHECK(taken);
  }
  CHECK(source->requests().empty());
  CHECK(store->contains(*target("a", 9 * kMiB + 5).file().sha256));
  CHECK(handled == 2 * (9 * kMiB + 5 + 2 * 4096));
  CHECK(run() == Outcomes{{"of the same size", Outcome::kPresent},
                          {"one", Outcome::kPresent},
                          {"two", Outcome::kPresent}});
}

TEST_CASE_METHOD(ImportFixture, "a name that states a digest spares reading, and is not believed") {
  start();
  want("a", 4096);
  put(Digest::of("of nobody").hex(), content("a", 4096));
  put("sha256-" + target("a", 4096).file().sha256->hex(), content("b", 4096));
  list();
  CHECK(run() ==
        Outcomes{{Digest::of("of nobody").hex(), Outcome::kUnknown},
                 {"sha256-" + target("a", 4096).file().sha256->hex(), Outcome::kMismatched}});
  CHECK(observer.failed().empty());
  CHECK(store->usage().quarantined == 0);
}

TEST_CASE_METHOD(ImportFixture, "what has changed since it was found is not taken") {
  start();
  want("a", 4096);
  put("one", content("a", 4096));
  list();
  put("one", content("a", 4096) + "more");
  CHECK(run() == Outcomes{{"one", Outcome::kFailed}});
  CHECK(codes.with([](const auto& all) { return all; }) == std::vector{Errc::kChanged});
  CHECK(store->usage().blobs == 0);
}

TEST_CASE_METHOD(ImportFixture, "of several files with one content one is taken") {
  start();
  want("a", 4096);
  for (const char* const name : {"1", "2", "3", "4"}) put(name, content("a", 4096));
  list();
  SECTION("for good") {
    const auto outcomes = run();
    const auto present = std::ranges::count_if(
        outcomes, [](const auto& one) { return one.second == Outcome::kPresent; });
    CHECK(present == 3);
    CHECK(observer.completed() == std::vector<std::string>{"a"});
  }
  SECTION("in a dry run") {
    const auto outcomes = run({.dry_run = Importer::DryRun::kYes});
    CHECK(std::ranges::count_if(
              outcomes, [](const auto& one) { return one.second == Outcome::kWouldTake; }) == 1);
    CHECK(store->usage().blobs == 0);
  }
}

TEST_CASE_METHOD(ImportFixture,
                 "a snapshot that is not admitted is asked for once, and not taken") {
  start();
  want("a", 4096);
  put("one", content("a", 4096));
  list();
  std::atomic<int> asked = 0;
  admit = [&](const snapshot::SnapshotPtr&) {
    ++asked;
    throw Error(Errc::kNoSpace, "full");
  };
  CHECK(run() == Outcomes{{"one", Outcome::kFailed}});
  CHECK(asked == 1);
  CHECK(store->usage().blobs == 0);
}

TEST_CASE_METHOD(ImportFixture, "a file that somebody is fetching is left to him") {
  source->on_chunk(
      [this](const snapshot::File&, ByteRange, const std::stop_token& stop) { gate.wait(stop); });
  start();
  want("a", kMiB);
  put("one", content("a", kMiB));
  list();
  const FillPtr running = fill("a", kMiB);
  PendingRead read(running, 0, 100);
  CHECK(run() == Outcomes{{"one", Outcome::kFetching}});
  CHECK(run({.how = Importer::How::kLink}) == Outcomes{{"one", Outcome::kFetching}});
  gate.open();
  CHECK(read.wait() == FakeSource::content("a", {0, 100}));
}

TEST_CASE_METHOD(ImportFixture, "wrong bytes that an earlier fill has left do no harm") {
  start();
  want("a", kMiB);
  put("one", content("a", kMiB));
  {
    const auto partial = store->partial(target("a", kMiB).key(), kMiB);
    const std::vector<std::byte> wrong(kMiB / 2);
    partial->write(0, wrong);
    partial->set_written({0, kMiB / 2});
  }
  list();
  const auto outcomes = run();
  CHECK((outcomes.at("one") == Outcome::kCopied || outcomes.at("one") == Outcome::kReflinked));
  CHECK(source->requests().empty());
}

TEST_CASE_METHOD(ImportFixture, "a link is the file itself, read-only, and its own owner's") {
  start();
  want("a", 9 * kMiB);
  put("one", content("a", 9 * kMiB));
  list();
  const auto found = folder() / "one";
  SECTION("it is taken") {
    CHECK(run({.how = Importer::How::kLink}) == Outcomes{{"one", Outcome::kLinked}});
    struct stat status{};
    REQUIRE(::stat(found.c_str(), &status) == 0);
    CHECK(status.st_nlink == 2);
    CHECK((status.st_mode & 0777) == 0444);
    CHECK(observer.completed() == std::vector<std::string>{"a"});
    CHECK(store->midstates(*target("a", 9 * kMiB).file().sha256)->size() == 1);
    CHECK(reads_right(fill("a", 9 * kMiB), {0, 9 * kMiB}));
  }
  SECTION("not while somebody may write to it") {
    const std::ofstream writer(found, std::ios::app);
    CHECK(run({.how = Importer::How::kLink}) == Outcomes{{"one", Outcome::kFailed}});
    CHECK(codes.with([](const auto& all) { return all; }) == std::vector{Errc::kBusy});
    CHECK(store->usage().blobs == 0);
  }
  CHECK(source->requests().empty());
}

}  // namespace
}  // namespace weightfs::fetch
