// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/local_tree.hpp"

#include "base/file.hpp"
#include "digest/sha256.hpp"
#include "snapshot/snapshot.hpp"
#include "source/collecting_sink.hpp"
#include "source/failure.hpp"
#include "source/file/local_copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace weightfs::source {
namespace {

namespace fs = std::filesystem;
using weightfs::test::CollectingSink;
using weightfs::test::failure_of;

class Scratch {
 public:
  Scratch() : root_((fs::current_path() / "weightfs-XXXXXX").string()) {
    if (::mkdtemp(root_.data()) == nullptr) throw std::runtime_error("mkdtemp");
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { fs::remove_all(root_); }

  [[nodiscard]] fs::path path(const std::string& name) const { return fs::path(root_) / name; }
  void write(const std::string& name, std::string_view content) const {
    fs::create_directories(path(name).parent_path());
    const Fd fd = open_file(path(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    write_at(fd, 0, std::as_bytes(std::span(content)));
  }

 private:
  std::string root_;
};

LocalTree::Listing list(const LocalTree& tree, std::uint64_t size) {
  return tree.list({.is_wanted = [size](std::uint64_t found) { return found == size; },
                    .is_spared = [](const struct stat&) { return false; }},
                   {});
}

std::vector<std::string> paths(const LocalTree::Listing& listing) {
  std::vector<std::string> paths;
  for (const LocalTree::File& file : listing.files) paths.push_back(file.path);
  std::ranges::sort(paths);
  return paths;
}

/// Has one file, and counts what is read.
class Origin final : public Source {
 public:
  snapshot::Snapshot resolve(std::stop_token) override { throw Error(Errc::kInternal, "asked"); }
  void read(const snapshot::File&, ByteRange range, Sink& sink, std::stop_token) override {
    bytes += range.size();
    sink.write(range.begin, std::as_bytes(std::span(content)).subspan(range.begin, range.size()));
  }
  std::optional<Fd> open_local(const snapshot::File&) override { return std::nullopt; }
  [[nodiscard]] std::string describe() const override { return "origin"; }

  std::string content;
  std::uint64_t bytes = 0;
};

TEST_CASE("what a file's name says about its content") {
  const std::string hex(64, 'a');
  CHECK(claimed_digest("blobs/" + hex)->hex() == hex);
  CHECK(claimed_digest("blobs/sha256-" + hex)->hex() == hex);
  CHECK_FALSE(claimed_digest("blobs/" + hex + ".incomplete"));
  CHECK_FALSE(claimed_digest(hex + "/model.safetensors"));
  CHECK_FALSE(claimed_digest("blobs/" + std::string(40, 'a')));
  CHECK_FALSE(claimed_digest(""));
}

TEST_CASE("each file of a wanted size is found once, and others are counted") {
  const Scratch scratch;
  scratch.write("a", "four");
  scratch.write("deep/.hidden", "five5");
  scratch.write("deep/b", "4444");
  fs::create_hard_link(scratch.path("a"), scratch.path("deep/again"));
  fs::create_symlink("../a", scratch.path("deep/link"));
  const auto listing = list(LocalTree(scratch.path("").string()), 4);
  CHECK(listing.files.size() == 2);
  CHECK(listing.others == 1);
  CHECK(listing.other_bytes == 5);
  CHECK(listing.passed_over == 0);
  CHECK(listing.unreadable.empty());
}

TEST_CASE("nothing leads out of the tree") {
  const Scratch scratch;
  scratch.write("outside/x", "four");
  scratch.write("in/y", "4444");
  fs::create_symlink(scratch.path("outside/x"), scratch.path("in/absolute"));
  fs::create_symlink("../outside/x", scratch.path("in/relative"));
  fs::create_symlink("../outside", scratch.path("in/folder"));
  fs::create_symlink("/proc/self/exe", scratch.path("in/magic"));
  fs::create_symlink(".", scratch.path("in/round"));
  const LocalTree tree(scratch.path("in").string());
  auto listing = list(tree, 4);
  CHECK(paths(listing) == std::vector<std::string>{"y"});
  CHECK(listing.passed_over == 4);
  // Nor does a file that became a link meanwhile.
  fs::remove(scratch.path("in/y"));
  fs::create_symlink("../outside/x", scratch.path("in/y"));
  CHECK_THROWS_AS(tree.open(listing.files.front()), Error);
}

TEST_CASE("links of a snapshot of a Hub cache lead to its blobs, and say their digests") {
  const Scratch scratch;
  const std::string digest(64, 'b');
  scratch.write("models--o--m/blobs/" + digest, "four");
  scratch.write("models--o--m/blobs/other", "4444");
  fs::create_directories(scratch.path("models--o--m/snapshots/c/sub"));
  fs::create_symlink("../../../blobs/" + digest, scratch.path("models--o--m/snapshots/c/sub/w"));
  const auto listing = list(LocalTree(scratch.path("models--o--m/snapshots/c").string()), 4);
  REQUIRE(paths(listing) == std::vector<std::string>{"snapshots/c/sub/w"});
  CHECK(listing.files.front().claimed->hex() == digest);
}

TEST_CASE("what is no directory, or is not there, is refused") {
  const Scratch scratch;
  scratch.write("file", "");
  CHECK(failure_of([&] { LocalTree(scratch.path("none").string()); })->code == Errc::kNotFound);
  CHECK(failure_of([&] { LocalTree(scratch.path("file").string()); })->code == Errc::kInvalid);
}

TEST_CASE("directories that are spared are not entered") {
  const Scratch scratch;
  scratch.write("a/x", "four");
  scratch.write("b/x", "four");
  struct stat spared{};
  REQUIRE(::stat(scratch.path("a").c_str(), &spared) == 0);
  const auto listing =
      LocalTree(scratch.path("").string())
          .list(
              {.is_wanted = [](std::uint64_t) { return true; },
               .is_spared =
                   [&](const struct stat& directory) { return directory.st_ino == spared.st_ino; }},
              {});
  CHECK(paths(listing) == std::vector<std::string>{"b/x"});
}

TEST_CASE("a copy is read in place of its source for as long as it does not change") {
  const Scratch scratch;
  scratch.write("x", "0123456789");
  const auto tree = std::make_shared<LocalTree>(scratch.path("").string());
  const auto listing = list(*tree, 10);
  const Digest digest = Digest::of("0123456789");
  const auto origin = std::make_shared<Origin>();
  origin->content = "0123456789";
  bool needed = false;
  LocalCopy copy({.tree = tree, .file = listing.files.front(), .sha256 = digest}, origin,
                 [&] { return needed; });
  const snapshot::File file{.path = "w", .size = 10, .sha256 = digest};

  CollectingSink whole(0);
  copy.read(file, {0, 10}, whole, {});
  CHECK(whole.bytes == "0123456789");
  CHECK(copy.bytes_read() == 10);
  CHECK(copy.open_local(file));
  CHECK(origin->bytes == 0);

  const snapshot::File other{.path = "other", .size = 10, .sha256 = Digest::of("other")};
  CollectingSink others(2);
  copy.read(other, {2, 5}, others, {});
  CHECK(origin->bytes == 3);

  scratch.write("x", "0123456789+");
  CollectingSink changed(0);
  CHECK(failure_of([&] { copy.read(file, {0, 10}, changed, {}); })->code == Errc::kChanged);
  CHECK(origin->bytes == 3);
  CHECK_FALSE(copy.open_local(file));
  needed = true;
  CollectingSink rest(4);
  copy.read(file, {4, 10}, rest, {});
  CHECK(rest.bytes == "456789");
  CHECK(origin->bytes == 9);
}

}  // namespace
}  // namespace weightfs::source
