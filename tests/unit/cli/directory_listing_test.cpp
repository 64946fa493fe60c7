// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/directory_listing.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "running_daemon.hpp"
#include "snapshot/manifest.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <sys/stat.h>
#include <filesystem>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::cli;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

/// A directory with a bit of everything.
class Tree : public TemporaryDirectory {
 public:
  Tree() {
    write("config.json", "{}");
    write("empty", "");
    write("sub/deep/model.bin", std::string(3'000'000, 'm'));
    write("run.sh", "#!", 0755);
    write("\xff.bin", "bytes");
    write("sub/weightfs.json", "an ordinary file, further down");
    write("weightfs.json", "what an earlier run wrote");
    fs::create_symlink("config.json", path() / "link.json");
    fs::create_symlink("sub", path() / "around");
    fs::create_symlink("nowhere", path() / "dangling");
    (void)::mkfifo((path() / "pipe").c_str(), 0600);
  }
  void write(const std::string& name, const std::string& content, unsigned mode = 0644) const {
    fs::create_directories((path() / name).parent_path());
    write_file_durably(path() / name, content, mode);
  }
};

}  // namespace

TEST_CASE("a listing has every file once, sorted, links to files included") {
  const Tree tree;
  DirectoryListing listing = list_directory(tree.path());
  std::vector<std::string> paths;
  for (const auto& file : listing.files) paths.push_back(file.path);
  CHECK(paths == std::vector<std::string>{"config.json", "empty", "link.json", "run.sh",
                                          "sub/deep/model.bin", "sub/weightfs.json", "\xff.bin"});
  CHECK(listing.skipped.size() == 3);
  CHECK(listing.files[3].executable);
  CHECK(listing.files[4].size == 3'000'000);

  std::uint64_t last = 0;
  hash_files(tree.path(), listing.files, {.threads = 3, .progress = [&](std::uint64_t bytes) {
                                            CHECK(bytes >= last);
                                            last = bytes;
                                          }});
  CHECK(last >= 3'000'000);
  CHECK(listing.files[0].sha256 == Digest::of("{}"));
  CHECK(listing.files[1].sha256 == Digest::of(""));
  CHECK(listing.files[4].sha256 == Digest::of(std::string(3'000'000, 'm')));
}

TEST_CASE("a file that is not what was listed is an error, and so is what is no directory") {
  const Tree tree;
  DirectoryListing listing = list_directory(tree.path());
  tree.write("run.sh", "#! longer");
  CHECK_THROWS_AS(hash_files(tree.path(), listing.files, {.threads = 2, .progress = {}}), Error);
  fs::remove(tree.path() / "run.sh");
  CHECK_THROWS_AS(hash_files(tree.path(), listing.files, {.threads = 2, .progress = {}}), Error);
  CHECK_THROWS_AS(list_directory(tree.path() / "config.json"), Error);
  CHECK_THROWS_AS(list_directory(tree.path() / "none"), Error);
}

TEST_CASE("manifest writes what a source reads, the same each time") {
  const Tree tree;
  const std::string directory = tree.path().string();
  const Outcome done = run_program({"manifest", directory});
  CHECK(done.status == 0);
  CHECK_THAT(done.out, ContainsSubstring("weightfs.json: 7 files, 3.00 MB"));
  CHECK_THAT(done.err, ContainsSubstring("skipped pipe"));
  const std::string text = read_file(tree.path() / "weightfs.json", 1 << 20);
  const auto files = snapshot::parse_manifest(text);
  CHECK(files.size() == 7);
  CHECK(files.back().path == "\xff.bin");
  CHECK(run_program({"manifest", directory, "--output", "-", "--threads", "1"}).out == text);
  CHECK(run_program({"manifest", directory + "/none"}).status == 3);
  CHECK(run_program({"manifest", directory + "/config.json"}).status == 1);
}
