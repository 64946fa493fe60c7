// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/hub_cache.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "catalog/catalog.hpp"
#include "digest/git_blob.hpp"
#include "snapshot/hub_reference.hpp"

#include <catch2/catch_test_macros.hpp>

#include <nlohmann/json.hpp>

#include <stdlib.h>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::vfs;
using snapshot::File;
using snapshot::Snapshot;
using snapshot::SnapshotPtr;

namespace {

using Contents = std::map<std::string, std::string>;
using Names = std::vector<std::string>;

std::string commit(char digit) {
  return std::string(40, digit);
}

bool in_lfs(const std::string& path) {
  return path.ends_with(".safetensors");
}

std::string pointer(const std::string& content) {
  return "version https://git-lfs.github.com/spec/v1\noid sha256:" + Digest::of(content).hex() +
         "\nsize " + std::to_string(content.size()) + "\n";
}

std::string blob_id(const std::string& path, const std::string& content) {
  return git_blob_id(in_lfs(path) ? pointer(content) : content);
}

std::string etag(const std::string& path, const std::string& content) {
  return in_lfs(path) ? Digest::of(content).hex() : git_blob_id(content);
}

SnapshotPtr repository(const std::string& source, const std::string& commit, const Contents& all,
                       const std::string& before = "") {
  std::vector<File> files;
  for (const auto& [path, content] : all) {
    files.push_back(
        {.path = path,
         .size = content.size(),
         .sha256 = Digest::of(content),
         .validator = before + snapshot::HubVersion{commit, blob_id(path, content)}.text()});
  }
  return std::make_shared<const Snapshot>(source, commit, std::move(files));
}

class SteppedClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return {}; }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override {
    return std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
  }
  std::int64_t seconds = 1'700'000'000;
};

struct Hubs {
  Hubs() {
    std::string name = (std::filesystem::temp_directory_path() / "weightfs-hub-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
    catalog = std::make_unique<catalog::Catalog>(path, clock, Log::silent());
    hub = std::make_unique<HubCache>(*catalog);
  }
  ~Hubs() {
    hub.reset();
    catalog.reset();
    std::filesystem::remove_all(path);
  }
  void add(const std::string& name, const std::string& source, const SnapshotPtr& snapshot) {
    ++clock.seconds;
    catalog->add(name, source, snapshot);
  }
  /// Whatever is listed is found, too.
  Names names(const std::string& directory) {
    Names names;
    hub->list(directory, 0, [&](const std::string& name, const HubCache::Entry& entry, auto at) {
      CHECK(at == names.size());
      const auto found = hub->find(directory, name);
      CHECK((found && found->index() == entry.index()));
      names.push_back(name);
      return true;
    });
    return names;
  }
  template <class T>
  T entry(const std::string& directory, const std::string& name) {
    const auto found = hub->find(directory, name);
    REQUIRE(found);
    REQUIRE(std::holds_alternative<T>(*found));
    return std::get<T>(*found);
  }
  std::string text(const std::string& directory, const std::string& name) {
    const auto text = entry<HubCache::Text>(directory, name);
    CHECK(hub->size(text) == hub->text(text).size());
    return hub->text(text);
  }

  std::filesystem::path path;
  SteppedClock clock;
  std::unique_ptr<catalog::Catalog> catalog;
  std::unique_ptr<HubCache> hub;
};

const Contents kFiles{{"config.json", "{}"}, {"sub/deep/a.txt", "a"}, {"w.safetensors", "weights"}};
const std::string kFolder = "models--org--name";

}  // namespace

TEST_CASE("a model of the Hub has the layout of the Hub's cache") {
  Hubs hubs;
  hubs.add("my/model", "hf://org/name", repository("hf://org/name", commit('a'), kFiles));
  hubs.add("plain", "file:///data", repository("file:///data", commit('a'), {{"x", "x"}}));
  CHECK(hubs.names("") == Names{".locks", "CACHEDIR.TAG", kFolder, "version.txt"});
  CHECK(hubs.text("", "version.txt") == "1");
  CHECK(hubs.text("", "CACHEDIR.TAG").starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
  CHECK(hubs.names(".locks") == Names{kFolder});
  CHECK(hubs.names(".locks/" + kFolder).empty());
  CHECK(hubs.names(kFolder) == Names{".no_exist", "blobs", "refs", "snapshots", "trees"});
  CHECK(hubs.names(kFolder + "/refs") == Names{"main"});
  CHECK(hubs.text(kFolder + "/refs", "main") == commit('a'));
  CHECK(hubs.names(kFolder + "/snapshots") == Names{commit('a')});

  Names etags;
  for (const auto& [path, content] : kFiles) etags.push_back(etag(path, content));
  std::ranges::sort(etags);
  CHECK(hubs.names(kFolder + "/blobs") == etags);
  const auto blob =
      hubs.entry<HubCache::Blob>(kFolder + "/blobs", etag("w.safetensors", "weights"));
  CHECK(blob.view == "my/model");
  CHECK(blob.snapshot->files()[blob.file].path == "w.safetensors");

  const auto links = hubs.entry<HubCache::Links>(kFolder + "/snapshots", commit('a'));
  for (std::uint32_t file = 0; file < kFiles.size(); ++file) {
    CHECK(hubs.hub->target(links, file)->file == file);
  }
  CHECK(hubs.hub->link(*links.snapshot, 0) == "../../blobs/" + etag("config.json", "{}"));
  CHECK(hubs.hub->link(*links.snapshot, 1) == "../../../../blobs/" + etag("sub/deep/a.txt", "a"));

  for (const char* none : {"models--org--other", "blobs", "datasets--org--name"}) {
    CHECK_FALSE(hubs.hub->find("", none));
  }
  CHECK_FALSE(hubs.hub->find(kFolder, "other"));
  CHECK_FALSE(hubs.hub->find(kFolder + "/refs", "other"));
  CHECK_FALSE(hubs.hub->find(kFolder + "/snapshots", commit('b')));
  CHECK_FALSE(hubs.hub->find(kFolder + "/trees", commit('a')));
  CHECK_FALSE(hubs.hub->find("gone/snapshots", commit('a')));
}

TEST_CASE("the tree of a commit says of each file what the Hub does") {
  Hubs hubs;
  hubs.add("m", "hf://org/name",
           repository("hf://org/name", commit('a'),
                      {{"a \"\xc3\xa9\".json", "{}"}, {"w.safetensors", "w"}}));
  CHECK(hubs.names(kFolder + "/trees") == Names{commit('a') + ".json"});
  const auto tree = nlohmann::json::parse(hubs.text(kFolder + "/trees", commit('a') + ".json"));
  CHECK(tree ==
        nlohmann::json{{"format_version", 1},
                       {"files",
                        {{"a \"\xc3\xa9\".json", {{"size", 2}, {"blob_id", git_blob_id("{}")}}},
                         {"w.safetensors",
                          {{"size", 1},
                           {"blob_id", git_blob_id(pointer("w"))},
                           {"lfs_sha256", Digest::of("w").hex()},
                           {"lfs_size", 1}}}}}});
}

TEST_CASE("what loaders ask for and a commit lacks is known to be absent") {
  Hubs hubs;
  hubs.add("m", "hf://org/name", repository("hf://org/name", commit('a'), kFiles));
  CHECK(hubs.names(kFolder + "/.no_exist") == Names{commit('a')});
  const Names absent = hubs.names(kFolder + "/.no_exist/" + commit('a'));
  CHECK(std::ranges::count(absent, "adapter_config.json") == 1);
  CHECK(std::ranges::count(absent, "config.json") == 0);
  CHECK(hubs.text(kFolder + "/.no_exist/" + commit('a'), "generation_config.json").empty());
  CHECK(hubs.names(kFolder + "/.no_exist/" + commit('b')).empty());
}

TEST_CASE("references are directories where they have a slash, and lead to what their names show") {
  Hubs hubs;
  hubs.add("a", "hf://org/name", repository("hf://org/name", commit('a'), kFiles));
  hubs.add("b", "hf://org/name@refs/pr/1",
           repository("hf://org/name@refs/pr/1", commit('b'), {{"config.json", "pull"}}));
  CHECK(hubs.names(kFolder + "/refs") == Names{"main", "refs"});
  CHECK(hubs.names(kFolder + "/refs/refs") == Names{"pr"});
  CHECK(hubs.names(kFolder + "/refs/refs/pr") == Names{"1"});
  CHECK(hubs.text(kFolder + "/refs/refs/pr", "1") == commit('b'));
  CHECK(hubs.names(kFolder + "/snapshots") == Names{commit('a'), commit('b')});

  ++hubs.clock.seconds;
  hubs.catalog->flip("a", repository("hf://org/name", commit('c'), {{"w.safetensors", "weights"}}));
  CHECK(hubs.text(kFolder + "/refs", "main") == commit('c'));
  CHECK(hubs.names(kFolder + "/snapshots") == Names{commit('a'), commit('b'), commit('c')});
  // Of two revisions with the same content the one that is shown has the node.
  const std::string same = etag("w.safetensors", "weights");
  CHECK(hubs.entry<HubCache::Blob>(kFolder + "/blobs", same).view == "a");
  const std::string old = etag("sub/deep/a.txt", "a");
  CHECK(hubs.entry<HubCache::Blob>(kFolder + "/blobs", old).view == "a@" + commit('a'));
  hubs.catalog->rollback("a");
  CHECK(hubs.text(kFolder + "/refs", "main") == commit('a'));
}

TEST_CASE("a repository that no name has the main branch of shows what was updated last as main") {
  Hubs hubs;
  hubs.add("a", "hf://org/name@" + commit('a'),
           repository("hf://org/name@" + commit('a'), commit('a'), {{"x", "1"}}));
  CHECK(hubs.names(kFolder + "/refs") == Names{"main"});
  hubs.add("b", "hf://org/name@" + commit('b'),
           repository("hf://org/name@" + commit('b'), commit('b'), {{"x", "2"}}));
  CHECK(hubs.text(kFolder + "/refs", "main") == commit('b'));
  hubs.catalog->remove("b");
  CHECK(hubs.text(kFolder + "/refs", "main") == commit('a'));
  hubs.catalog->remove("a");
  CHECK_FALSE(hubs.hub->find("", kFolder));
}

TEST_CASE("of several names with one branch or commit the one updated last counts") {
  Hubs hubs;
  hubs.add("a", "hf://org/name", repository("hf://org/name", commit('a'), {{"x", "1"}}));
  hubs.add("b", "hf://org/name", repository("hf://org/name", commit('b'), {{"x", "2"}}));
  CHECK(hubs.text(kFolder + "/refs", "main") == commit('b'));
  const std::string few = "release://m=hf://org/name&m+=y";
  hubs.add("c", few, repository(few, commit('a'), {{"y", "3"}}));
  const auto links = hubs.entry<HubCache::Links>(kFolder + "/snapshots", commit('a'));
  CHECK(links.snapshot->files()[0].path == "y");
}

TEST_CASE("files chosen by patterns and several sources of one model are the repository's") {
  Hubs hubs;
  const std::string source = "release://m=hf://org/name&m|=https://host/m/&m-=*.bin";
  hubs.add("a", source, repository(source, commit('a'), kFiles, "0|"));
  CHECK(hubs.names(kFolder + "/refs") == Names{"main"});
  const auto tree = nlohmann::json::parse(hubs.text(kFolder + "/trees", commit('a') + ".json"));
  CHECK(tree["files"]["config.json"]["blob_id"] == git_blob_id("{}"));
}

TEST_CASE("what is not known as the Hub lists it has no place in its cache") {
  Hubs hubs;
  SECTION("a revision that is no commit") {
    hubs.add("a", "hf://org/name", repository("hf://org/name", "latest", kFiles));
  }
  SECTION("a file whose id in git nobody told of") {
    const File file{.path = "x", .size = 1, .sha256 = Digest::of("x")};
    hubs.add("a", "hf://org/name",
             std::make_shared<const Snapshot>("hf://org/name", commit('a'), std::vector{file}));
  }
  SECTION("several sources as one tree") {
    const std::string release = "release://base=hf://org/name&adapters/x=hf://org/x";
    hubs.add("a", release, repository(release, commit('a'), kFiles));
  }
  CHECK(hubs.names("") == Names{".locks", "CACHEDIR.TAG", "version.txt"});
}

TEST_CASE("commits and repositories with the very same files keep their own names") {
  Hubs hubs;
  hubs.add("a", "hf://org/name", repository("hf://org/name", commit('a'), kFiles));
  hubs.add("b", "hf://org/copy", repository("hf://org/copy", commit('b'), kFiles));
  CHECK(hubs.names(kFolder + "/snapshots") == Names{commit('a')});
  CHECK(hubs.names("models--org--copy/snapshots") == Names{commit('b')});
  CHECK(hubs.text("models--org--copy/refs", "main") == commit('b'));
  hubs.catalog->stage("a", repository("hf://org/name", commit('c'), kFiles));
  CHECK(hubs.text(kFolder + "/refs", "main") == commit('c'));
  CHECK(hubs.names(kFolder + "/trees") == Names{commit('c') + ".json"});

  hubs.catalog.reset();
  hubs.catalog = std::make_unique<catalog::Catalog>(hubs.path, hubs.clock, Log::silent());
  hubs.hub = std::make_unique<HubCache>(*hubs.catalog);
  CHECK(hubs.text(kFolder + "/refs", "main") == commit('c'));
  CHECK(hubs.text("models--org--copy/refs", "main") == commit('b'));
  CHECK(hubs.catalog->revision("b", commit('b')));
  CHECK_FALSE(hubs.catalog->revision("b", commit('a')));
}

TEST_CASE("repositories with the same blobs are not mixed up") {
  Hubs hubs;
  hubs.add("a", "hf://org/name", repository("hf://org/name", commit('a'), {{"x", "1"}}));
  hubs.add("b", "hf://datasets/org/name",
           repository("hf://datasets/org/name", commit('b'), {{"x", "1"}, {"y", "2"}}));
  CHECK(hubs.names(".locks") == Names{"datasets--org--name", kFolder});
  CHECK(hubs.names(kFolder + "/blobs") == Names{git_blob_id("1")});
  CHECK(hubs.names("datasets--org--name/blobs").size() == 2);
}
