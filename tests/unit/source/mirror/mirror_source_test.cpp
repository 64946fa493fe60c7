// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/mirror/mirror_source.hpp"

#include "base/error.hpp"
#include "base/synchronized.hpp"
#include "source/collecting_sink.hpp"
#include "source/failure.hpp"
#include "source/mirror/standing.hpp"
#include "source/selection/selected_source.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::source;
using namespace std::chrono_literals;
using snapshot::File;
using snapshot::Snapshot;
using weightfs::test::CollectingSink;
using weightfs::test::failure_of;

namespace {

/// A source in memory that a test can break.
class Double final : public Source {
 public:
  explicit Double(std::map<std::string, std::string> files) : files_(std::move(files)) {}

  Snapshot resolve(std::stop_token /*stop*/) override {
    ++resolved;
    if (down) throw TransientError(Errc::kUnavailable, "down");
    std::vector<File> files;
    for (const auto& [path, content] : files_) {
      File file{.path = path, .size = content.size(), .validator = "v"};
      if (digests) file.sha256 = Digest::of(content);
      files.push_back(std::move(file));
    }
    return {"double", "r1", std::move(files)};
  }
  void read(const File& file, ByteRange range, Sink& sink, std::stop_token stop) override {
    ++reads;
    CHECK(file.validator == "v");
    if (down) throw TransientError(Errc::kUnavailable, "down");
    if (stop.stop_requested()) throw Error(Errc::kCancelled, "cancelled");
    const std::string& content = files_.at(file.path);
    const auto bytes = std::as_bytes(std::span(content));
    for (std::uint64_t at = range.begin; at < range.end; ++at) {
      if (at == dies_at) throw TransientError(Errc::kUnavailable, "died");
      sink.write(at, bytes.subspan(at, 1));
    }
  }
  void begin_afresh(const File& file) override { begun = file.validator; }
  std::optional<Fd> open_local(const File& /*file*/) override { return std::nullopt; }
  std::string describe() const override { return "double"; }

  bool down = false;
  bool digests = true;
  std::uint64_t dies_at = ~0ULL;
  int resolved = 0;
  int reads = 0;
  std::string begun;

 private:
  std::map<std::string, std::string> files_;
};

struct Pair {
  explicit Pair(std::map<std::string, std::string> first_files = {{"a", "0123456789"}},
                std::map<std::string, std::string> second_files = {{"a", "0123456789"}})
      : first(std::make_shared<Double>(std::move(first_files))),
        second(std::make_shared<Double>(std::move(second_files))),
        both("release://x", {first, second}) {}

  std::shared_ptr<Double> first;
  std::shared_ptr<Double> second;
  MirrorSource both;
};

std::string read(Source& source, const File& file) {
  CollectingSink sink(0);
  source.read(file, {0, file.size}, sink, {});
  CHECK(!sink.gap);
  return sink.bytes;
}

}  // namespace

TEST_CASE("the next source goes on where one died, and no byte comes twice") {
  Pair pair;
  const Snapshot found = pair.both.resolve({});
  CHECK(found.source() == "release://x");
  CHECK(found.revision() == "r1");
  const File file = found.files()[0];
  pair.first->dies_at = 4;
  CHECK(read(pair.both, file) == "0123456789");
  CHECK(pair.first->reads == 1);
  CHECK(pair.second->reads == 1);
  // It stands back for a while.
  CHECK(read(pair.both, file) == "0123456789");
  CHECK(pair.first->reads == 1);
  CHECK(pair.second->resolved == 1);
}

TEST_CASE("where all fail, the first says why, and they are asked again") {
  Pair pair;
  const File file = pair.both.resolve({}).files()[0];
  pair.first->dies_at = 2;
  pair.second->dies_at = 3;
  const auto failure = failure_of([&] { read(pair.both, file); });
  REQUIRE(failure);
  CHECK(failure->transient);
  pair.second->dies_at = pair.first->dies_at = ~0ULL;
  CHECK(read(pair.both, file) == "0123456789");
}

TEST_CASE("what the first cannot list, the next does, also for another daemon") {
  Pair pair;
  pair.first->down = true;
  const Snapshot found = pair.both.resolve({});
  CHECK(read(pair.both, found.files()[0]) == "0123456789");
  pair.first->down = false;
  Pair other;
  CHECK(read(other.both, found.files()[0]) == "0123456789");
  CHECK(other.first->reads == 1);  // after it had proven that it has it
  CHECK(other.first->resolved == 1);
  CHECK(other.second->resolved == 0);
}

TEST_CASE("only the same sha256, size and path are interchangeable") {
  for (const auto& other : std::vector<std::map<std::string, std::string>>{
           {{"a", "012345678X"}}, {{"b", "0123456789"}}, {}}) {
    Pair pair({{"a", "0123456789"}}, other);
    const File file = pair.both.resolve({}).files()[0];
    pair.first->dies_at = 4;
    CHECK(failure_of([&] { read(pair.both, file); }));
    CHECK(pair.second->reads == 0);
  }
  Pair pair;
  pair.first->digests = pair.second->digests = false;
  const File file = pair.both.resolve({}).files()[0];
  CHECK(read(pair.both, file) == "0123456789");
  pair.first->dies_at = 4;
  CHECK(failure_of([&] { read(pair.both, file); }));
  CHECK(pair.second->reads == 0);
}

TEST_CASE("a source whose bytes were wrong is not the first to be asked for them again") {
  Pair pair;
  const File file = pair.both.resolve({}).files()[0];
  pair.both.begin_afresh(file);
  CHECK(pair.first->begun == "v");
  read(pair.both, file);
  pair.both.refute(file);
  pair.both.begin_afresh(file);
  read(pair.both, file);
  CHECK(pair.first->reads == 1);
  CHECK(pair.second->reads == 1);
}

TEST_CASE("of several that may have been wrong each gets its turn") {
  const Digest file = Digest::of("x");
  Standing standing(3);
  const Standing::Time now{};
  CHECK(standing.order(file, now) == std::vector<std::size_t>{0, 1, 2});
  standing.served(0, file);
  standing.served(2, file);
  standing.refuted(file);
  CHECK(standing.order(file, now) == std::vector<std::size_t>{1, 0, 2});
  CHECK(standing.order(Digest::of("y"), now) == std::vector<std::size_t>{0, 1, 2});
  standing.begin(file);
  standing.served(1, file);
  standing.refuted(file);
  standing.served(0, file);
  standing.refuted(file);
  CHECK(standing.order(file, now) == std::vector<std::size_t>{1, 2, 0});

  standing.failed(0, now);
  CHECK(standing.order(Digest::of("y"), now + 1s) == std::vector<std::size_t>{1, 2, 0});
  CHECK(standing.order(Digest::of("y"), now + 6s) == std::vector<std::size_t>{0, 1, 2});
  standing.worked(0);
  CHECK(standing.order(Digest::of("y"), now + 1s) == std::vector<std::size_t>{0, 1, 2});
}

TEST_CASE("a cancelled read is nobody's failure, and nobody else's work") {
  Pair pair;
  const File file = pair.both.resolve({}).files()[0];
  std::stop_source stop;
  stop.request_stop();
  CollectingSink sink(0);
  CHECK(failure_of([&] { pair.both.read(file, {0, 10}, sink, stop.get_token()); })->code ==
        Errc::kCancelled);
  CHECK(pair.second->reads == 0);
  CHECK(read(pair.both, file) == "0123456789");
  CHECK(pair.first->reads == 2);
}

TEST_CASE("of a source only the files that are wanted are shown") {
  auto inner =
      std::make_shared<Double>(std::map<std::string, std::string>{{"a.bin", "1"}, {"a.json", "2"}});
  SelectedSource source("release://y", inner, {{"*.json"}, {}});
  const Snapshot found = source.resolve({});
  CHECK(found.source() == "release://y");
  REQUIRE(found.files().size() == 1);
  CHECK(read(source, found.files()[0]) == "2");
  SelectedSource none("release://y", inner, {{"*.txt"}, {}});
  CHECK(failure_of([&] { static_cast<void>(none.resolve({})); })->code == Errc::kNotFound);
}
