// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "telemetry/event_file.hpp"

#include "../control/temporary_directory.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "telemetry/event_line.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fstream>

namespace weightfs::telemetry {
namespace {

std::string line(std::uint64_t sequence) {
  return line_of({.kind = EventKind::kHit, .sequence = sequence}) + "\n";
}

class Folder {
 public:
  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "events.jsonl"; }
  [[nodiscard]] std::filesystem::path before() const {
    return directory_.path() / "events.jsonl.1";
  }
  [[nodiscard]] std::string text() const { return read_file(path(), 1 << 20); }
  [[nodiscard]] EventFile file(std::uint64_t most = 1 << 20) const { return {path(), most}; }
  void write(std::string_view text) const { std::ofstream(path(), std::ios::app) << text; }
  [[nodiscard]] std::vector<std::uint64_t> last(std::size_t count) const {
    std::vector<std::uint64_t> sequences;
    for (const Event& event : file().read_last(count).events) sequences.push_back(event.sequence);
    return sequences;
  }

 private:
  tests::TemporaryDirectory directory_;
};

using Sequences = std::vector<std::uint64_t>;

TEST_CASE("a file that is full becomes the one before, and both stay within the limit") {
  const Folder folder;
  const std::uint64_t most = 10 * line(1000).size();
  EventFile file = folder.file(most);
  for (std::uint64_t i = 1000; i < 1095; ++i) {
    file.append(line(i));
    CHECK(std::filesystem::file_size(folder.path()) <= most);
  }
  CHECK(std::filesystem::file_size(folder.before()) == most);
  CHECK(folder.last(3) == Sequences{1092, 1093, 1094});
  CHECK(folder.last(100).size() == 15);
  CHECK(folder.last(100).front() == 1080);
}

TEST_CASE("the tail says whether there is more before it") {
  const Folder folder;
  CHECK(folder.file().read_last(5).whole);
  EventFile file = folder.file();
  for (std::uint64_t i = 1; i <= 5; ++i) file.append(line(i));
  CHECK(folder.file().read_last(5).whole);
  CHECK_FALSE(folder.file().read_last(4).whole);
  std::filesystem::copy_file(folder.path(), folder.before());
  CHECK_FALSE(folder.file().read_last(5).whole);
  CHECK(folder.file().read_last(10).whole);
}

TEST_CASE("what a writer that died left of a line is cut off before the next") {
  const Folder folder;
  folder.write(line(1) + line(2).substr(0, 20));
  CHECK(folder.last(9) == Sequences{1});
  folder.file().append(line(3));
  CHECK(folder.text() == line(1) + line(3));
}

TEST_CASE("a file that is nothing but a torn line is begun anew") {
  const Folder folder;
  folder.write("{\"seq\":");
  folder.file().append(line(3));
  CHECK(folder.text() == line(3));
}

TEST_CASE("lines that are no events are passed over") {
  const Folder folder;
  folder.write("hello\n\n" + line(1) + "{}\n" + line(2) + "\n");
  CHECK(folder.last(9) == Sequences{1, 2});
  CHECK(folder.last(1) == Sequences{2});
}

TEST_CASE("a file that others remove, truncate or move away is gone on with") {
  const Folder folder;
  EventFile file = folder.file();
  file.append(line(1));
  std::filesystem::remove(folder.path());
  file.append(line(2));
  CHECK(folder.text() == line(2));
  std::filesystem::resize_file(folder.path(), 0);
  file.append(line(3));
  CHECK(folder.text() == line(3));
  std::filesystem::rename(folder.path(), folder.before());
  file.append(line(4));
  CHECK(folder.text() == line(4));
}

TEST_CASE("a full disk is an error, and what it took of the lines is cut off") {
  const Folder folder;
  EventFile file(folder.path(), 1 << 20);
  std::filesystem::create_symlink("/dev/full", folder.path());
  CHECK_THROWS_AS(file.append(line(1)), Error);  // nor is a link followed
  std::filesystem::remove(folder.path());
  file.append(line(2));
  CHECK(folder.text() == line(2));
}

}  // namespace
}  // namespace weightfs::telemetry
