// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/release/release_source.hpp"

#include "base/file.hpp"
#include "net/http_client.hpp"
#include "source/collecting_sink.hpp"
#include "source/failure.hpp"
#include "source/source_factory.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

namespace fs = std::filesystem;
using namespace weightfs;
using namespace weightfs::source;
using snapshot::File;
using snapshot::Snapshot;
using weightfs::test::CollectingSink;
using weightfs::test::failure_of;

namespace {

/// Directories that stand for the places where the parts are.
class Places {
 public:
  Places() {
    std::string name = fs::temp_directory_path() / "weightfs-release-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;
  ~Places() { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& content) const {
    fs::create_directories((root_ / path).parent_path());
    write_file_durably(root_ / path, content);
  }
  /// `parts`: "base=a&tokenizer!=b", with folders in place of sources.
  [[nodiscard]] SourcePtr open(std::string parts) {
    std::string text = "release://";
    for (const char c : parts)
      text += c == '=' ? "=file://" + root_.string() + "/" : std::string(1, c);
    return make_source(snapshot::Reference::parse(text), http_, hubs_);
  }

 private:
  fs::path root_;
  net::HttpClient http_{net::HttpClientOptions{}};
  HubPool hubs_{http_, {}};
};

std::string content(Source& source, const Snapshot& snapshot, const std::string& path) {
  const auto index = snapshot.index_of(path);
  if (!index) return "no such file";
  const File file = snapshot.files()[*index];
  CollectingSink sink(0);
  source.read(file, {0, file.size}, sink, {});
  return sink.bytes;
}

}  // namespace

TEST_CASE("the parts of a release are one tree, each at its place") {
  Places places;
  places.write("base/config.json", "{}");
  places.write("base/model.safetensors", "weights");
  places.write("words/tokenizer.json", "tokens");
  places.write("x/adapter.safetensors", "adapter");
  const SourcePtr source = places.open("base=base&tokenizer=words&adapters/x=x");
  const Snapshot snapshot = source->resolve({});
  CHECK(snapshot.files().size() == 4);
  CHECK(content(*source, snapshot, "model.safetensors") == "weights");
  CHECK(content(*source, snapshot, "tokenizer.json") == "tokens");
  CHECK(content(*source, snapshot, "adapters/x/adapter.safetensors") == "adapter");
  CHECK(source->open_local(snapshot.files()[0]).has_value());

  SECTION("also after a restart, before anybody has listed it") {
    const SourcePtr again = places.open("base=base&tokenizer=words&adapters/x=x");
    CHECK(content(*again, snapshot, "tokenizer.json") == "tokens");
    CHECK(content(*again, snapshot, "adapters/x/adapter.safetensors") == "adapter");
  }
  SECTION("its revision is another when one of them is") {
    CHECK(source->resolve({}).revision() == snapshot.revision());
    places.write("x/adapter.safetensors", "another adapter");
    CHECK(source->resolve({}).revision() != snapshot.revision());
    const auto failure =
        failure_of([&] { content(*source, snapshot, "adapters/x/adapter.safetensors"); });
    REQUIRE(failure);
    CHECK(failure->code == Errc::kChanged);
  }
}

TEST_CASE("two parts that give the same path are refused, unless one is the overlay") {
  Places places;
  places.write("base/tokenizer.json", "of the base");
  places.write("words/tokenizer.json", "of its own");
  const auto refused = [&](const std::string& parts) {
    const auto failure = failure_of([&] { (void)places.open(parts)->resolve({}); });
    return failure && failure->code == Errc::kInvalid;
  };
  CHECK(refused("base=base&tokenizer=words"));
  CHECK(refused("base!=base&tokenizer!=words"));
  for (const char* const parts : {"base=base&tokenizer!=words", "tokenizer!=words&base=base"}) {
    const SourcePtr source = places.open(parts);
    const Snapshot snapshot = source->resolve({});
    CHECK(snapshot.files().size() == 1);
    CHECK(content(*source, snapshot, "tokenizer.json") == "of its own");
  }
}
