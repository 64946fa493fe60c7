// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/snapshot.hpp"

#include "base/error.hpp"

#include <fmt/format.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>

using namespace weightfs;
using Catch::Matchers::ContainsSubstring;
using snapshot::File;
using snapshot::Snapshot;

namespace {

File known(std::string path, std::string_view content) {
  return {.path = std::move(path), .size = content.size(), .sha256 = Digest::of(content)};
}

File unknown(std::string path, std::string validator) {
  return {.path = std::move(path), .size = 3, .validator = std::move(validator)};
}

Snapshot tree(std::vector<File> files) {
  return {"http://host/x/", "", std::move(files)};
}

Errc refusal(std::vector<File> files, const std::string& what) {
  try {
    (void)tree(std::move(files));
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring(what));
    return error.code();
  }
  FAIL_CHECK("accepted");
  return Errc::kInternal;
}

Errc load_error(const std::string& json) {
  try {
    (void)Snapshot::from_json(json);
  } catch (const Error& error) {
    return error.code();
  }
  FAIL_CHECK("accepted");
  return Errc::kInternal;
}

void check_same(const Snapshot& left, const Snapshot& right) {
  CHECK(left.source() == right.source());
  CHECK(left.revision() == right.revision());
  CHECK(left.files() == right.files());
  CHECK(left.bytes() == right.bytes());
  CHECK(left.key() == right.key());
  CHECK(left.id() == right.id());
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

}  // namespace

TEST_CASE("files are sorted bytewise and found by path") {
  const Snapshot snapshot =
      tree({known("b", "1"), known("a/z", "22"), known("a-b", "333"), known("\xFF", "")});
  REQUIRE(snapshot.files().size() == 4);
  CHECK(snapshot.files()[0].path == "a-b");
  CHECK(snapshot.files()[1].path == "a/z");
  CHECK(snapshot.files()[3].path == "\xFF");
  CHECK(snapshot.bytes() == 6);
  CHECK(snapshot.find("a/z") == &snapshot.files()[1]);
  CHECK(snapshot.find("a") == nullptr);
  CHECK(snapshot.find("zz") == nullptr);
  CHECK(snapshot.find("") == nullptr);
}

TEST_CASE("two files cannot share a path, nor can a file be a directory") {
  CHECK(refusal({known("a", "1"), known("a", "1")}, "\"a\" appears twice") == Errc::kInvalid);
  CHECK(refusal({known("a", "1"), known("a/b", "1")}, "\"a\" is a file and a directory") ==
        Errc::kInvalid);
  // Others sort between the two.
  CHECK(refusal({known("x/a", "1"), known("x/a-b", "1"), known("x/a!", "1"), known("x/a/b/c", "1")},
                "\"x/a\" is a file and a directory") == Errc::kInvalid);
  CHECK_NOTHROW(tree({known("a", "1"), known("a-", "1"), known("ab/c", "1"), known("ab-/c", "1")}));
}

TEST_CASE("bad paths and impossible sizes are refused") {
  CHECK(refusal({known("../a", "1")}, "\"..\" component") == Errc::kInvalid);
  File huge = known("a", "");
  huge.size = snapshot::kMaxFileSize + 1;
  CHECK(refusal({huge}, "more than a file can have") == Errc::kInvalid);
  huge.size = snapshot::kMaxFileSize;
  CHECK_NOTHROW(tree({huge}));
  CHECK(refusal({huge, known("b", "1")}, "sum") == Errc::kInvalid);
}

TEST_CASE("the same sha256 cannot have two sizes") {
  const Digest digest = Digest::of("x");
  CHECK_NOTHROW(Snapshot(
      "http://h/", "",
      {{.path = "a", .size = 1, .sha256 = digest}, {.path = "b", .size = 1, .sha256 = digest}}));
  CHECK_THROWS_AS(Snapshot("http://h/", "",
                           {{.path = "a", .size = 1, .sha256 = digest},
                            {.path = "b", .size = 2, .sha256 = digest}}),
                  Error);
}

TEST_CASE("a snapshot has no more directories than any tree needs") {
  std::string deep;
  for (std::size_t depth = 1; depth + 1 < snapshot::kMaxDepth; ++depth) deep += "/d";
  const std::size_t enough = snapshot::kMaxDirectories / (snapshot::kMaxDepth - 1);
  std::vector<File> files;
  for (std::size_t i = 0; i < enough; ++i) {
    const std::string top = std::to_string(i);
    files.push_back(known(top + deep + "/f", ""));
    files.push_back(known(top + deep + "/g", ""));
  }
  CHECK_NOTHROW(tree(files));
  files.push_back(known("x" + deep + "/f", ""));
  CHECK(refusal(files, "directories") == Errc::kInvalid);
}

TEST_CASE("the id is the sha256 over the lines that FORMAT.md shows") {
  File run = known("bin/run", "x");
  run.executable = true;
  const Snapshot snapshot = tree({run, known("a\nb", "")});
  const std::string text = "weightfs snapshot 1\n3:a\nb 0 - sha256 " + Digest::of("").hex() +
                           "\n7:bin/run 1 x sha256 " + Digest::of("x").hex() + "\n";
  CHECK(snapshot.id() == Digest::of(text));
  CHECK(snapshot.key() == Digest::of(text));
  CHECK_FALSE(snapshot.provisional());
}

TEST_CASE("the key has source and validator where the sha256 is unknown") {
  const Snapshot snapshot = tree({known("a", "abc"), unknown("b", "etag \n1")});
  const std::string text = "weightfs snapshot 1\n1:a 3 - sha256 " + Digest::of("abc").hex() +
                           "\n1:b 3 - validator 14:http://host/x/ 7:etag \n1\n";
  CHECK(snapshot.key() == Digest::of(text));
  CHECK(snapshot.provisional());
  CHECK_FALSE(snapshot.id());
}

TEST_CASE("the id depends on paths, sizes, executable bits and digests, and on nothing else") {
  const File file = known("a", "abc");
  const Digest id = *tree({file, known("b", "")}).id();
  CHECK(*tree({known("b", ""), file}).id() == id);
  CHECK(*Snapshot("file:///y", "main", {file, known("b", "")}).id() == id);
  File changed = file;
  changed.mtime = 5;
  changed.validator = "etag";
  CHECK(*tree({changed, known("b", "")}).id() == id);
  changed = file;
  changed.executable = true;
  CHECK(*tree({changed, known("b", "")}).id() != id);
  changed = file;
  changed.size = 4;
  CHECK(*tree({changed, known("b", "")}).id() != id);
  changed = file;
  changed.path = "A";
  CHECK(*tree({changed, known("b", "")}).id() != id);
  CHECK(*tree({known("a", "abd"), known("b", "")}).id() != id);
  CHECK(*tree({file}).id() != id);
  CHECK_FALSE(tree({}).provisional());
}

TEST_CASE("the same validator at two sources makes two keys") {
  CHECK(Snapshot("http://a/", "", {unknown("f", "v")}).key() !=
        Snapshot("http://b/", "", {unknown("f", "v")}).key());
  CHECK(Snapshot("http://a/", "", {unknown("f", "v")}).key() !=
        Snapshot("http://a/", "", {unknown("f", "w")}).key());
}

TEST_CASE("the revision is the key where the source has none") {
  const Snapshot snapshot = tree({known("a", "1")});
  CHECK(snapshot.revision() == snapshot.key().hex());
  CHECK(Snapshot("s", "main", {}).revision() == "main");
}

TEST_CASE("learning digests keeps the key and ends in the id of a snapshot that knew them") {
  const Snapshot first = tree({unknown("a", "v1"), unknown("b", "v2"), known("c", "ccc")});
  const Snapshot second = first.with_digest(0, Digest::of("aaa"));
  CHECK(second.key() == first.key());
  CHECK(second.provisional());
  CHECK(first.files()[0].sha256 == std::nullopt);
  const Snapshot third = second.with_digest(1, Digest::of("bbb"));
  CHECK(third.key() == first.key());
  CHECK(third.revision() == first.revision());
  CHECK(third.id() == tree({known("a", "aaa"), known("b", "bbb"), known("c", "ccc")}).id());
  CHECK(third.id() != third.key());
}

TEST_CASE("a digest that contradicts a known one is corrupt, the same one is no news") {
  const Snapshot snapshot = tree({known("a", "abc")});
  check_same(snapshot.with_digest(0, Digest::of("abc")), snapshot);
  try {
    (void)snapshot.with_digest(0, Digest::of("abd"));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kCorrupt);
  }
  CHECK_THROWS_AS(snapshot.with_digest(1, Digest::of("abc")), Error);
}

TEST_CASE("a snapshot that learned one digest shares most files with the one before") {
  std::vector<File> files;
  for (int i = 0; i < 2'000; ++i) files.push_back(unknown(std::to_string(10'000 + i), "v"));
  const Snapshot first = tree(files);
  const Snapshot second = first.with_digest(1'000, Digest::of("x"));
  std::size_t copied = 0;
  for (std::size_t i = 0; i < first.files().size(); ++i) {
    if (&first.files()[i] != &second.files()[i]) ++copied;
    CHECK((second.files()[i].sha256 == Digest::of("x")) == (i == 1'000));
  }
  CHECK(copied <= 256);
  CHECK_FALSE(first.files()[1'000].sha256);
}

TEST_CASE("many digests learned at once are the same as one after the other") {
  const Snapshot first = tree({unknown("a", "v"), unknown("b", "w"), known("c", "1")});
  const std::vector<snapshot::LearnedDigest> learned{{1, Digest::of("bbb")},
                                                     {0, Digest::of("aaa")}};
  check_same(first.with_digests(learned),
             first.with_digest(0, Digest::of("aaa")).with_digest(1, Digest::of("bbb")));
  CHECK_FALSE(first.with_digests(learned).provisional());
  check_same(first.with_digests({}), first);
  const std::vector<snapshot::LearnedDigest> twice{{1, Digest::of("bbb")}, {1, Digest::of("c")}};
  CHECK_THROWS_AS(first.with_digests(twice), Error);
}

TEST_CASE("the state file gives every byte back") {
  File odd = known("odd \xFF\n\"\\", "x");
  odd.executable = true;
  odd.mtime = -7;
  File both = known("both", "y");
  both.validator = "etag beside a digest";
  Snapshot snapshot("file:///\xFE\xFF", "r\"\xC3\xA9\n",
                    {odd, both, unknown("v", "\xFF 1"), unknown("w", "")});
  check_same(Snapshot::from_json(snapshot.to_json()), snapshot);

  snapshot = snapshot.with_digest(2, Digest::of("v"));
  check_same(Snapshot::from_json(snapshot.to_json()), snapshot);
  snapshot = snapshot.with_digest(3, Digest::of("w"));
  CHECK_FALSE(snapshot.provisional());
  const Snapshot loaded = Snapshot::from_json(snapshot.to_json());
  check_same(loaded, snapshot);
  CHECK(loaded.to_json() == snapshot.to_json());

  check_same(Snapshot::from_json(tree({}).to_json()), tree({}));
}

TEST_CASE("a state file whose key does not fit its files is corrupt") {
  const std::string json = tree({known("a", "abc"), unknown("b", "v1")}).to_json();
  CHECK(load_error(replaced(json, "\"v1\"", "\"v2\"")) == Errc::kCorrupt);
  CHECK(load_error(replaced(json, Digest::of("abc").hex(), Digest::of("x").hex())) ==
        Errc::kCorrupt);
  CHECK(load_error(replaced(json, "http://host", "http://hose")) == Errc::kCorrupt);
}

TEST_CASE("a state file of another version is refused, members of a later one are skipped") {
  const std::string json = tree({known("a", "abc")}).to_json();
  CHECK(load_error(replaced(json, "\"version\":1", "\"version\":2")) == Errc::kUnsupported);
  CHECK_NOTHROW(Snapshot::from_json(replaced(json, "{\"version\"", "{\"later\":[{}],\"version\"")));
}

TEST_CASE("a malformed state file is refused") {
  const std::string json = tree({known("a", "abc")}).to_json();
  CHECK(load_error("") == Errc::kInvalid);
  CHECK(load_error("{}") == Errc::kInvalid);
  CHECK(load_error(json.substr(0, json.size() / 2)) == Errc::kInvalid);
  CHECK(load_error(replaced(json, "\"version\":1,", "")) == Errc::kInvalid);
  CHECK(load_error(replaced(json, "\"version\":1", "\"version\":\"1\"")) == Errc::kInvalid);
  CHECK(load_error(replaced(json, "\"key\":", "\"other\":")) == Errc::kInvalid);
  CHECK(load_error(replaced(json, "\"path\":\"a\"", "\"path\":\"../a\"")) == Errc::kInvalid);
  const std::string learned = tree({unknown("a", "v")}).with_digest(0, Digest::of("1")).to_json();
  CHECK(load_error(replaced(learned, "\"sha256\":\"" + Digest::of("1").hex() + "\",", "")) ==
        Errc::kInvalid);
}

TEST_CASE("a tree of files whose names begin with each other is checked in linear time") {
  std::vector<File> files;
  std::string path;
  for (int i = 0; i < 4000; ++i) {
    path += i % 200 == 199 ? "d/x" : "x";
    if (path.size() > snapshot::kMaxPathBytes) break;
    files.push_back({.path = path, .sha256 = Digest()});
  }
  const auto start = std::chrono::steady_clock::now();
  CHECK_NOTHROW(tree(files));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}
