// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/catalog.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

using namespace weightfs;
using catalog::Catalog;
using catalog::check_name;
using snapshot::File;
using snapshot::Snapshot;
using snapshot::SnapshotPtr;

namespace {

struct State {
  State() {
    std::string pattern = std::filesystem::temp_directory_path() / "weightfs-catalog-XXXXXX";
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
    reopen();
  }
  ~State() {
    catalog.reset();
    std::filesystem::remove_all(path);
  }
  void reopen() {
    catalog.reset();
    catalog = std::make_unique<Catalog>(path, clock, Log::silent());
  }

  SystemClock clock;
  std::filesystem::path path;
  std::unique_ptr<Catalog> catalog;
};

SnapshotPtr make(const std::string& source, const std::string& content, bool known = true) {
  File file;
  file.path = "w";
  file.size = content.size();
  if (known) {
    file.sha256 = Digest::of(content);
  } else {
    file.validator = content;
  }
  File second = file;
  second.path = "x";
  return std::make_shared<const Snapshot>(source, "", std::vector<File>{file, second});
}

Errc code_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no error");
  return Errc::kInternal;
}

}  // namespace

TEST_CASE("names are one or more components without '.' in front and without '@'", "[catalog]") {
  CHECK_NOTHROW(check_name("a"));
  CHECK_NOTHROW(check_name("org/name.v2"));
  for (const char* bad : {"", "/a", "a/", "a//b", "..", "a/../b", ".hub", "a/.b", "a@b", "a/b@c"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(check_name(bad), Error);
  }
}

TEST_CASE("everything is there again after a restart", "[catalog]") {
  State state;
  const auto one = make("file:///m", "one");
  const auto two = make("file:///m", "two");
  state.catalog->add("org/m", "file:///m", one);
  state.catalog->flip("org/m", two);
  state.catalog->pin("org/m", {.reason = "launch", .owner = "ada", .until = 0});
  state.reopen();
  const auto model = state.catalog->find("org/m");
  REQUIRE(model);
  CHECK(model->current == two->key());
  CHECK(model->revisions == std::vector<Digest>{one->key(), two->key()});
  CHECK(model->pin == catalog::Pin{.reason = "launch", .owner = "ada", .until = 0});
  CHECK(state.catalog->snapshot(one->key())->files() == one->files());
  CHECK(state.catalog->snapshot_by_id(*two->id())->key() == two->key());
}

TEST_CASE("a name is rolled back to what was confirmed, however often it flipped since",
          "[catalog]") {
  State state;
  const auto a = make("file:///m", "a");
  const auto b = make("file:///m", "b");
  const auto c = make("file:///m", "c");
  const auto current = [&] { return state.catalog->find("m")->current; };
  state.catalog->add("m", "file:///m", a);
  CHECK(code_of([&] { state.catalog->rollback("m"); }) == Errc::kNotReady);
  state.catalog->flip("m", b);
  state.catalog->flip("m", c);
  state.reopen();
  CHECK(state.catalog->find("m")->confirmed == a->key());
  state.catalog->rollback("m");
  CHECK(current() == a->key());
  CHECK(code_of([&] { state.catalog->rollback("m"); }) == Errc::kNotReady);

  state.catalog->flip("m", b);
  state.catalog->confirm("m");
  CHECK(code_of([&] { state.catalog->rollback("m"); }) == Errc::kNotReady);
  state.catalog->flip("m", c);
  state.reopen();
  state.catalog->rollback("m");
  CHECK(current() == b->key());
  CHECK(code_of([&] { state.catalog->confirm("other"); }) == Errc::kNotFound);
  CHECK(code_of([&] { state.catalog->rollback("other"); }) == Errc::kNotFound);
}

TEST_CASE("a candidate learns its digests before any name has it, and is forgotten without one") {
  State state;
  const auto snapshot = std::make_shared<const Snapshot>(
      "file:///m", "", std::vector<File>{{.path = "f", .size = 1, .validator = "v"}});
  const auto file = state.path / "snapshots" / (snapshot->key().hex() + ".json");
  const auto learn = [&] {
    state.catalog->consider(snapshot);
    state.catalog->learn(snapshot->key(), 0, Digest::of("f"));
    CHECK(state.catalog->snapshot(snapshot->key())->id());
  };
  learn();
  state.catalog->dismiss(snapshot->key());
  CHECK(state.catalog->snapshots().empty());
  CHECK(state.catalog->forgotten(snapshot->key()));
  CHECK_FALSE(std::filesystem::exists(file));

  learn();
  state.catalog->add("m", "file:///m", snapshot);
  state.catalog->dismiss(snapshot->key());
  state.reopen();
  CHECK(state.catalog->snapshot(snapshot->key())->id());
}

TEST_CASE("two revisions with the same bytes are no ambiguity") {
  State state;
  const auto with = [](const std::string& validator) {
    const Snapshot listed("file:///m", "", {{.path = "f", .size = 1, .validator = validator}});
    return std::make_shared<const Snapshot>(listed.with_digest(0, Digest::of("f")));
  };
  state.catalog->add("m", "file:///m", with("one"));
  state.catalog->flip("m", with("two"));
  CHECK(state.catalog->revision("m", with("one")->id()->hex()));
}

TEST_CASE("what has stood for long enough is confirmed, and only that", "[catalog]") {
  State state;
  const auto a = make("file:///m", "a");
  const auto b = make("file:///m", "b");
  state.catalog->add("m", "file:///m", a);
  state.catalog->flip("m", b);
  const std::int64_t flipped = state.catalog->find("m")->updated;
  CHECK(state.catalog->confirm_since(flipped - 1).empty());
  CHECK(state.catalog->rolled_back_to(a->key(), flipped));
  CHECK_FALSE(state.catalog->rolled_back_to(a->key(), flipped + 1));
  CHECK_FALSE(state.catalog->rolled_back_to(b->key(), flipped));
  CHECK(state.catalog->confirm_since(flipped) == std::vector<std::string>{"m"});
  CHECK(state.catalog->confirm_since(flipped).empty());
  CHECK(state.catalog->find("m")->confirmed == b->key());
  CHECK_FALSE(state.catalog->rolled_back_to(a->key(), flipped));
}

TEST_CASE("a state directory has one daemon, on the whole machine", "[catalog]") {
  State state;
  try {
    const Catalog second(state.path, state.clock, Log::silent());
    FAIL("two of them");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kBusy);
  }
  state.reopen();
}

TEST_CASE("a name cannot be both a model and a directory of models", "[catalog]") {
  State state;
  state.catalog->add("a/b", "file:///m", make("file:///m", "1"));
  CHECK(code_of([&] { state.catalog->add("a", "file:///m", make("file:///m", "1")); }) ==
        Errc::kInvalid);
  CHECK(code_of([&] { state.catalog->add("a/b/c", "file:///m", make("file:///m", "1")); }) ==
        Errc::kInvalid);
  CHECK(code_of([&] { state.catalog->add("a/b", "file:///m", make("file:///m", "1")); }) ==
        Errc::kBusy);
  CHECK_NOTHROW(state.catalog->add("a-b", "file:///m", make("file:///m", "1")));
  CHECK(state.catalog->is_namespace("a"));
  CHECK_FALSE(state.catalog->is_namespace("a-b"));
}

TEST_CASE("directories of names list each component once", "[catalog]") {
  State state;
  for (const char* name : {"a/x", "a/y", "a-b", "b"}) {
    state.catalog->add(name, "file:///m", make("file:///m", "1"));
  }
  const auto root = state.catalog->children("");
  REQUIRE(root.size() == 3);
  CHECK(root[0].component == "a-b");
  CHECK(root[1].component == "a");
  CHECK_FALSE(root[1].is_model);
  CHECK(root[2].is_model);
  CHECK(state.catalog->children("a").size() == 2);
  CHECK(state.catalog->children("b").empty());
}

TEST_CASE("a revision is found by key, by id and by an unambiguous prefix", "[catalog]") {
  State state;
  const auto one = make("file:///m", "one");
  state.catalog->add("m", "file:///m", one);
  state.catalog->flip("m", make("file:///m", "two"));
  CHECK(state.catalog->revision("m", one->key().hex())->key() == one->key());
  CHECK(state.catalog->revision("m", one->key().hex().substr(0, 8))->key() == one->key());
  CHECK(state.catalog->revision("m", one->key().hex().substr(0, 7)) == nullptr);
  CHECK(state.catalog->revision("m", "") == nullptr);
  CHECK(state.catalog->revision("other", one->key().hex()) == nullptr);
}

TEST_CASE("snapshots that no name has any more are forgotten, with their files", "[catalog]") {
  State state;
  const auto one = make("file:///m", "one");
  state.catalog->add("m", "file:///m", one);
  state.catalog->remove("m");
  CHECK(state.catalog->snapshot(one->key()) == nullptr);
  CHECK(state.catalog->snapshot_by_id(*one->id()) == nullptr);
  CHECK(std::filesystem::is_empty(state.path / "snapshots"));
  CHECK(code_of([&] { state.catalog->remove("m"); }) == Errc::kNotFound);
}

TEST_CASE("digests are learned one by one, over restarts, until the snapshot has its id",
          "[catalog]") {
  State state;
  const auto provisional = make("file:///m", "v1", false);
  state.catalog->add("m", "file:///m", provisional);
  state.catalog->learn(provisional->key(), 0, Digest::of("first"));
  state.reopen();
  const auto half = state.catalog->snapshot(provisional->key());
  CHECK(half->files()[0].sha256 == Digest::of("first"));
  CHECK(half->provisional());
  state.catalog->learn(provisional->key(), 1, Digest::of("second"));
  const auto whole = state.catalog->snapshot(provisional->key());
  REQUIRE(whole->id());
  CHECK(state.catalog->snapshot_by_id(*whole->id())->key() == provisional->key());
  state.reopen();
  CHECK(state.catalog->snapshot_by_id(*whole->id())->key() == provisional->key());
  CHECK(std::distance(std::filesystem::directory_iterator(state.path / "snapshots"), {}) == 1);
}

TEST_CASE("a torn line of learned digests is passed over", "[catalog]") {
  State state;
  const auto provisional = make("file:///m", "v1", false);
  state.catalog->add("m", "file:///m", provisional);
  state.catalog->learn(provisional->key(), 0, Digest::of("first"));
  std::ofstream(state.path / "snapshots" / (provisional->key().hex() + ".learned"), std::ios::app)
      << "1 abcdef";
  state.reopen();
  CHECK(state.catalog->snapshot(provisional->key())->files()[0].sha256 == Digest::of("first"));
}

TEST_CASE("what was learned is known although it cannot be written", "[catalog]") {
  State state;
  const auto provisional = make("file:///m", "v1", false);
  state.catalog->add("m", "file:///m", provisional);
  const std::string file = state.path / "snapshots" / provisional->key().hex();
  std::filesystem::create_directory(file + ".learned");
  SECTION("neither the lines nor the whole") {
    std::filesystem::create_directory(file + ".json.tmp");
  }
  SECTION("nothing but the whole") {
  }
  state.catalog->learn(provisional->key(), 0, Digest::of("first"));
  state.catalog->learn(provisional->key(), 1, Digest::of("second"));
  const auto whole = state.catalog->snapshot(provisional->key());
  REQUIRE(whole->id());
  CHECK(state.catalog->snapshot_by_id(*whole->id()));
  // Lines that cannot be read cost what is in them and no more.
  CHECK_NOTHROW(state.reopen());
  CHECK(state.catalog->snapshot(provisional->key()));
}

TEST_CASE("the last digest survives a restart even if the whole cannot be written", "[catalog]") {
  State state;
  const auto provisional = make("file:///m", "v1", false);
  state.catalog->add("m", "file:///m", provisional);
  const std::string temporary = state.path / "snapshots" / (provisional->key().hex() + ".json.tmp");
  std::filesystem::create_directory(temporary);
  state.catalog->learn(provisional->key(), 0, Digest::of("first"));
  state.catalog->learn(provisional->key(), 1, Digest::of("second"));
  state.reopen();
  CHECK(state.catalog->snapshot(provisional->key())->id());
}

TEST_CASE("a snapshot is forgotten with its last name, until one has it again", "[catalog]") {
  State state;
  const auto snapshot = make("file:///m", "a");
  CHECK_FALSE(state.catalog->forgotten(snapshot->key()));
  state.catalog->add("m", "file:///m", snapshot);
  state.catalog->add("n", "file:///m", snapshot);
  state.catalog->remove("m");
  CHECK_FALSE(state.catalog->forgotten(snapshot->key()));
  state.catalog->remove("n");
  CHECK(state.catalog->forgotten(snapshot->key()));
  state.catalog->add("m", "file:///m", snapshot);
  CHECK_FALSE(state.catalog->forgotten(snapshot->key()));
}

TEST_CASE("a damaged listing takes away its own name only, until that is added again",
          "[catalog]") {
  State state;
  const auto whole = make("file:///whole", "a");
  const auto hurt = make("file:///hurt", "b");
  state.catalog->add("org/whole", "file:///whole", whole);
  state.catalog->add("org/hurt", "file:///hurt", hurt);
  state.catalog->pin("org/hurt", {.reason = "why", .owner = "", .until = 0});
  const auto file = state.path / "snapshots" / (hurt->key().hex() + ".json");
  SECTION("cut") {
    std::filesystem::resize_file(file, 20);
  }
  SECTION("of another") {
    std::filesystem::copy_file(state.path / "snapshots" / (whole->key().hex() + ".json"), file,
                               std::filesystem::copy_options::overwrite_existing);
  }
  SECTION("gone") {
    std::filesystem::remove(file);
  }
  for (int life = 0; life < 2; ++life) {
    state.reopen();
    CHECK(state.catalog->find("org/whole"));
    CHECK_FALSE(state.catalog->find("org/hurt"));
    REQUIRE(state.catalog->lost().size() == 1);
    CHECK(state.catalog->lost()[0].source == "file:///hurt");
    state.catalog->unpin("org/whole");  // writes the names
  }
  state.catalog->add("org/hurt", "file:///hurt", hurt);
  state.reopen();
  CHECK(state.catalog->lost().empty());
  REQUIRE(state.catalog->find("org/hurt"));
  CHECK(state.catalog->find("org/hurt")->pin->reason == "why");
}

TEST_CASE("a lost name can be removed", "[catalog]") {
  State state;
  const auto hurt = make("file:///hurt", "b");
  state.catalog->add("org/hurt", "file:///hurt", hurt);
  std::filesystem::remove(state.path / "snapshots" / (hurt->key().hex() + ".json"));
  state.reopen();
  state.catalog->remove("org/hurt");
  state.reopen();
  CHECK(state.catalog->lost().empty());
}

TEST_CASE("the listing of another version is refused, and named", "[catalog]") {
  State state;
  const auto snapshot = make("file:///m", "a");
  state.catalog->add("m", "file:///m", snapshot);
  state.catalog.reset();
  const auto file = state.path / "snapshots" / (snapshot->key().hex() + ".json");
  std::ifstream in(file);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::size_t at = text.find("\"version\":1");
  REQUIRE(at != std::string::npos);
  text[at + 10] = '9';
  std::ofstream(file) << text;
  CHECK(code_of([&] { Catalog(state.path, state.clock, Log::silent()); }) == Errc::kUnsupported);
  CHECK(std::filesystem::exists(file));
}

TEST_CASE("an unknown or damaged catalog is refused and left as it is", "[catalog]") {
  State state;
  state.catalog.reset();
  for (const char* text : {"{\"version\":2,\"models\":[]}", "{", "[]", "{\"version\":1}"}) {
    CAPTURE(text);
    std::ofstream(state.path / "catalog.json") << text;
    CHECK_THROWS_AS(Catalog(state.path, state.clock, Log::silent()), Error);
    std::ifstream file(state.path / "catalog.json");
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == text);
  }
}
