// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/file_source.hpp"

#include "base/file.hpp"
#include "digest/sha256.hpp"
#include "io/scratch_file.hpp"
#include "snapshot/manifest.hpp"
#include "source/collecting_sink.hpp"
#include "source/failure.hpp"
#include "source/file/file_version.hpp"

#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

namespace fs = std::filesystem;
using weightfs::ByteRange;
using weightfs::Digest;
using weightfs::Errc;
using weightfs::Error;
using weightfs::Fd;
using namespace weightfs::source;
using weightfs::snapshot::File;
using weightfs::snapshot::Reference;
using weightfs::snapshot::Snapshot;
using weightfs::test::CollectingSink;
using weightfs::test::failure_of;
using weightfs::test::pattern;

namespace {

/// A directory that goes with the object.
class ScratchTree {
 public:
  explicit ScratchTree(const fs::path& parent = fs::current_path())
      : root_((parent / "weightfs-XXXXXX").string()) {
    if (::mkdtemp(root_.data()) == nullptr) throw std::runtime_error("mkdtemp");
  }
  ScratchTree(const ScratchTree&) = delete;
  ScratchTree& operator=(const ScratchTree&) = delete;
  ~ScratchTree() { fs::remove_all(root_); }

  [[nodiscard]] fs::path path(const std::string& name) const { return fs::path(root_) / name; }
  /// Writes in place: the inode stays.
  void write(const std::string& name, std::string_view content) const {
    fs::create_directories(path(name).parent_path());
    const Fd fd = weightfs::open_file(path(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    weightfs::write_at(fd, 0, std::as_bytes(std::span(content)));
  }
  void set_mtime(const std::string& name, std::int64_t seconds) const {
    const timespec times[] = {{seconds, 0}, {seconds, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path(name).c_str(), times, 0) == 0);
  }
  [[nodiscard]] Reference reference(const std::string& name = "") const {
    return Reference::parse("file://" + path(name).string());
  }

 private:
  std::string root_;
};

/// File accesses of this thread are those of nobody.
class AsNobody {
 public:
  AsNobody() { ::setfsuid(65534); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() { ::setfsuid(::geteuid()); }
};

std::vector<std::string> paths(const Snapshot& snapshot) {
  std::vector<std::string> result;
  for (const File& file : snapshot.files()) result.push_back(file.path);
  return result;
}

std::string read(FileSource& source, const File& file, ByteRange range) {
  CollectingSink sink(range.begin);
  source.read(file, range, sink, {});
  CHECK_FALSE(sink.gap);
  return sink.bytes;
}

auto resolve_failure(const Reference& reference) {
  return failure_of([&] { static_cast<void>(FileSource(reference).resolve({})); });
}

}  // namespace

TEST_CASE("a directory is a snapshot of all its regular files") {
  const ScratchTree tree;
  tree.write("model.safetensors", "weights");
  tree.write("sub/deep/config.json", "{}");
  tree.write(".hidden", "h");
  tree.write("empty", "");
  tree.write("not utf-8 \xff", "n");
  tree.write("run.sh", "#!");
  fs::permissions(tree.path("run.sh"), fs::perms::owner_exec, fs::perm_options::add);
  tree.set_mtime("model.safetensors", 1'234'567);
  fs::create_directories(tree.path("no files/here"));
  REQUIRE(::mkfifo(tree.path("fifo").c_str(), 0644) == 0);

  FileSource source(tree.reference());
  const Snapshot snapshot = source.resolve({});
  CHECK(paths(snapshot) == std::vector<std::string>{".hidden", "empty", "model.safetensors",
                                                    "not utf-8 \xff", "run.sh",
                                                    "sub/deep/config.json"});
  const File* const model = snapshot.find("model.safetensors");
  CHECK(model->size == 7);
  CHECK(model->mtime == 1'234'567);
  CHECK_FALSE(model->executable);
  CHECK_FALSE(model->sha256);
  CHECK_FALSE(model->validator.empty());
  CHECK(snapshot.find("run.sh")->executable);
  CHECK(snapshot.provisional());
  CHECK(snapshot.source() == tree.reference().text());
  CHECK(source.describe() == tree.path("").parent_path());
  CHECK(read(source, *model, {0, 7}) == "weights");
  CHECK(read(source, *snapshot.find("not utf-8 \xff"), {0, 1}) == "n");
  CHECK(source.resolve({}).key() == snapshot.key());
}

TEST_CASE("a single file is a snapshot of one") {
  const ScratchTree tree;
  const std::string content = pattern(3 << 20);
  tree.write("dir/x.gguf", content);
  FileSource source(tree.reference("dir/x.gguf"));
  const Snapshot snapshot = source.resolve({});
  REQUIRE(paths(snapshot) == std::vector<std::string>{"x.gguf"});
  const File& file = snapshot.files()[0];
  CHECK((read(source, file, {0, content.size()}) == content));
  CHECK((read(source, file, {1'234'567, 2'345'678}) == content.substr(1'234'567, 1'111'111)));
  // Another process may read what this one resolved.
  FileSource again(tree.reference("dir/x.gguf"));
  CHECK((read(again, file, {7, 9}) == content.substr(7, 2)));
}

TEST_CASE("symbolic links are followed to files and directories, also out of the tree") {
  const ScratchTree outside;
  outside.write("blobs/abc", "blob");
  outside.write("dir/in", "in");
  const ScratchTree tree;
  tree.write("real", "real");
  fs::create_symlink("real", tree.path("inside"));
  fs::create_symlink(outside.path("blobs/abc"), tree.path("model.bin"));
  fs::create_directory_symlink(outside.path("dir"), tree.path("linked"));
  FileSource source(tree.reference());
  const Snapshot snapshot = source.resolve({});
  CHECK(paths(snapshot) == std::vector<std::string>{"inside", "linked/in", "model.bin", "real"});
  CHECK(read(source, *snapshot.find("model.bin"), {0, 4}) == "blob");
  CHECK(read(source, *snapshot.find("linked/in"), {0, 2}) == "in");
}

TEST_CASE("a tree that makes no sense is refused, naming the place") {
  const ScratchTree tree;
  tree.write("sub/file", "x");
  SECTION("a link that leads nowhere") {
    fs::create_symlink("missing", tree.path("sub/dangling"));
  }
  SECTION("a link to itself") {
    fs::create_symlink("dangling", tree.path("sub/dangling"));
  }
  SECTION("a directory in itself") {
    fs::create_directory_symlink("..", tree.path("sub/dangling"));
  }
  const auto failure = resolve_failure(tree.reference());
  CHECK(failure->code == Errc::kInvalid);
  CHECK(failure->message.find("sub/dangling") != std::string::npos);
}

TEST_CASE("a tree that is too deep is refused") {
  const ScratchTree tree;
  std::string path;
  for (int i = 0; i < 130; ++i) path += "d/";
  tree.write(path + "file", "x");
  CHECK(resolve_failure(tree.reference())->code == Errc::kInvalid);
}

TEST_CASE("what is not there, or not a file, says so") {
  const ScratchTree tree;
  tree.write("file", "x");
  REQUIRE(::mkfifo(tree.path("fifo").c_str(), 0644) == 0);
  CHECK(resolve_failure(tree.reference("missing"))->code == Errc::kNotFound);
  CHECK(resolve_failure(tree.reference("file/below"))->code == Errc::kNotFound);
  CHECK(resolve_failure(tree.reference("fifo"))->code == Errc::kInvalid);
  CHECK(resolve_failure(Reference::parse("file:///dev/null"))->code == Errc::kInvalid);
}

TEST_CASE("what may not be read says so") {
  if (::geteuid() != 0) SKIP("only root can act as somebody else");
  // Not in the build tree, which may lie where nobody can go.
  const ScratchTree tree("/dev/shm");
  tree.write("closed/file", "x");
  tree.write("secret", "x");
  fs::permissions(tree.path(""), fs::perms(0755));
  fs::permissions(tree.path("secret"), fs::perms::none);
  FileSource source(tree.reference());
  const AsNobody nobody;
  const Snapshot snapshot = source.resolve({});
  const auto read_failure =
      failure_of([&] { static_cast<void>(read(source, *snapshot.find("secret"), {0, 1})); });
  REQUIRE(read_failure);
  CHECK(read_failure->code == Errc::kPermission);
  CHECK_FALSE(read_failure->transient);

  ::setfsuid(0);
  fs::permissions(tree.path("closed"), fs::perms::none);
  ::setfsuid(65534);
  const auto failure = resolve_failure(tree.reference());
  REQUIRE(failure);
  CHECK(failure->code == Errc::kPermission);
  CHECK(failure->message.find("closed") != std::string::npos);
}

TEST_CASE("weightfs.json gives digests, and is not part of the tree") {
  const ScratchTree tree;
  tree.write("a", "aaaa");
  tree.write("b", "bb");
  tree.write("more", "m");
  const std::vector<File> listed = {
      {.path = "b", .size = 2, .executable = true, .sha256 = Digest::of("bb")},
      {.path = "a", .size = 4, .mtime = 77, .sha256 = Digest::of("aaaa")},
  };
  tree.write("weightfs.json", weightfs::snapshot::write_manifest(listed));
  tree.write("SHA256SUMS", "an ordinary file here");
  tree.set_mtime("b", 99);
  FileSource source(tree.reference());
  const Snapshot snapshot = source.resolve({});
  CHECK(paths(snapshot) == std::vector<std::string>{"SHA256SUMS", "a", "b", "more"});
  CHECK(snapshot.find("a")->sha256 == Digest::of("aaaa"));
  CHECK(snapshot.find("a")->mtime == 77);
  CHECK(snapshot.find("a")->validator.empty());
  CHECK(snapshot.find("b")->mtime == 99);
  CHECK(snapshot.find("b")->executable);
  CHECK_FALSE(snapshot.find("more")->sha256);
  CHECK(read(source, *snapshot.find("a"), {1, 3}) == "aa");

  SECTION("a complete one makes the same snapshot as over HTTP") {
    fs::remove(tree.path("more"));
    fs::remove(tree.path("SHA256SUMS"));
    CHECK(source.resolve({}).id() == Snapshot("http://h/", "", listed).id());
  }
  SECTION("another size") {
    tree.write("a", "aaaaa");
    CHECK(resolve_failure(tree.reference())->code == Errc::kInvalid);
    CHECK(failure_of([&] { static_cast<void>(read(source, *snapshot.find("a"), {0, 1})); })->code ==
          Errc::kChanged);
  }
  SECTION("a file that is not there") {
    fs::remove(tree.path("a"));
    CHECK(resolve_failure(tree.reference())->message.find("\"a\"") != std::string::npos);
  }
  SECTION("twice") {
    tree.write("weightfs.json", weightfs::snapshot::write_manifest({listed[0], listed[0]}));
    CHECK(resolve_failure(tree.reference())->code == Errc::kInvalid);
  }
  SECTION("malformed") {
    tree.write("weightfs.json", "{\"files\":[");
    CHECK(resolve_failure(tree.reference())->code == Errc::kInvalid);
  }
}

TEST_CASE("a file that is another one by now is an error before its first byte") {
  const ScratchTree tree;
  tree.write("f", "old");
  tree.set_mtime("f", 1'000);
  FileSource source(tree.reference());
  const File file = *source.resolve({}).find("f");
  CHECK(source.open_local(file));
  SECTION("written again") {
    tree.write("f", "new");
  }
  SECTION("longer") {
    tree.write("f", "old and more");
    tree.set_mtime("f", 1'000);
  }
  SECTION("replaced") {
    tree.write("g", "new");
    tree.set_mtime("g", 1'000);
    fs::rename(tree.path("g"), tree.path("f"));
  }
  SECTION("a directory now") {
    fs::remove(tree.path("f"));
    fs::create_directory(tree.path("f"));
  }
  SECTION("a pipe now") {
    fs::remove(tree.path("f"));
    REQUIRE(::mkfifo(tree.path("f").c_str(), 0644) == 0);
  }
  CollectingSink sink(0);
  const auto failure = failure_of([&] { source.read(file, {0, 3}, sink, {}); });
  CHECK(failure->code == Errc::kChanged);
  CHECK_FALSE(failure->transient);
  CHECK(sink.bytes.empty());
  CHECK(failure_of([&] { static_cast<void>(source.open_local(file)); })->code == Errc::kChanged);
}

TEST_CASE("with a known digest, all ranges of a fill are of one version") {
  const ScratchTree tree;
  const std::string before(200'000, 'a');
  const std::string after(200'000, 'b');
  tree.write("w", before);
  tree.write("weightfs.json", "{\"files\":[{\"path\":\"w\",\"size\":200000,\"sha256\":\"" +
                                  Digest::of(before).hex() + "\"}]}");
  FileSource source(tree.reference());
  const Snapshot snapshot = source.resolve({});
  const File& file = snapshot.files()[0];
  REQUIRE(file.sha256);
  CHECK(read(source, file, {0, 10}) == "aaaaaaaaaa");
  tree.write("new", after);
  fs::rename(tree.path("new"), tree.path("w"));
  for (int part = 0; part < 2; ++part) {
    CHECK(failure_of([&] { static_cast<void>(read(source, file, {100'000, 100'010})); })->code ==
          Errc::kChanged);
  }
  CHECK(failure_of([&] { static_cast<void>(source.open_local(file)); })->code == Errc::kChanged);
  // A fill that has none of its bytes takes what it finds; the digest has the last word.
  source.begin_afresh(file);
  CHECK(read(source, file, {100'000, 100'010}) == "bbbbbbbbbb");
}

TEST_CASE("a version goes by the inode number where the filesystem keeps it") {
  struct stat status{};
  status.st_size = 5;
  status.st_ino = 7;
  status.st_mtim = {.tv_sec = 3, .tv_nsec = 4};
  const std::string stable = version_of(status, InodeNumber::kStable);
  const std::string unstable = version_of(status, InodeNumber::kUnstable);
  CHECK(stable == "size=5;mtime=3.000000004;inode=7");
  CHECK(unstable == "size=5;mtime=3.000000004");
  CHECK(is_version(stable, status));
  CHECK(is_version(unstable, status));
  status.st_ino = 8;
  CHECK_FALSE(is_version(stable, status));
  CHECK(is_version(unstable, status));
  status.st_mtim.tv_nsec = 5;
  CHECK_FALSE(is_version(unstable, status));
  CHECK(inode_number_at("/dev/shm") == InodeNumber::kStable);
}

TEST_CASE("a file that vanished is not found, a touched mode is no change") {
  const ScratchTree tree;
  tree.write("f", "old");
  FileSource source(tree.reference());
  const File file = *source.resolve({}).find("f");
  fs::permissions(tree.path("f"), fs::perms::owner_read);
  CHECK(read(source, file, {0, 3}) == "old");
  fs::remove(tree.path("f"));
  const auto failure = failure_of([&] { static_cast<void>(read(source, file, {0, 3})); });
  CHECK(failure->code == Errc::kNotFound);
  CHECK(failure_of([&] { static_cast<void>(source.open_local(file)); })->code == Errc::kNotFound);
}

TEST_CASE("a change under way ends the read, and no byte read after it arrives") {
  const ScratchTree tree;
  const std::string content = pattern(16 << 20);
  tree.write("f", content);
  tree.set_mtime("f", 1'000);
  FileSource source(tree.reference());
  const File file = *source.resolve({}).find("f");
  CollectingSink sink(0);
  bool changed = false;
  SECTION("written to") {
    sink.after_write = [&] {
      if (std::exchange(changed, true)) return;
      const Fd fd = weightfs::open_file(tree.path("f"), O_WRONLY);
      const std::string other(8 << 20, 'x');
      weightfs::write_at(fd, 8 << 20, std::as_bytes(std::span(other)));
    };
  }
  SECTION("cut") {
    sink.after_write = [&] { fs::resize_file(tree.path("f"), 8 << 20); };
  }
  const auto failure = failure_of([&] { source.read(file, {0, content.size()}, sink, {}); });
  CHECK(failure->code == Errc::kChanged);
  CHECK(sink.bytes.size() <= 4 << 20);
  CHECK((sink.bytes == content.substr(0, sink.bytes.size())));
}

TEST_CASE("a file replaced under way is read to its end, because it stays open") {
  const ScratchTree tree;
  const std::string content = pattern(8 << 20);
  tree.write("f", content);
  FileSource source(tree.reference());
  const File file = *source.resolve({}).find("f");
  CollectingSink sink(0);
  sink.after_write = [&] {
    tree.write("g", "another");
    fs::rename(tree.path("g"), tree.path("f"));
  };
  source.read(file, {0, content.size()}, sink, {});
  CHECK((sink.bytes == content));
}

TEST_CASE("what the sink throws comes out as it is, and a stop ends the read") {
  const ScratchTree tree;
  tree.write("f", pattern(8 << 20));
  FileSource source(tree.reference());
  const File file = *source.resolve({}).find("f");
  CollectingSink sink(0);
  sink.after_write = [] { throw Error(Errc::kIo, "mine"); };
  const auto thrown = failure_of([&] { source.read(file, {0, file.size}, sink, {}); });
  CHECK(thrown->message == "mine");
  CHECK_FALSE(thrown->transient);
  sink.after_write = [] { throw std::out_of_range("mine"); };
  CHECK_THROWS_AS(source.read(file, {0, file.size}, sink, {}), std::out_of_range);

  std::stop_source stop;
  CollectingSink stopped(0);
  stopped.after_write = [&] { stop.request_stop(); };
  CHECK(failure_of([&] { source.read(file, {0, file.size}, stopped, stop.get_token()); })->code ==
        Errc::kCancelled);
  CHECK(stopped.bytes.size() <= 4 << 20);
}

TEST_CASE("many ranges of a file at once are each right") {
  const ScratchTree tree;
  const std::string content = pattern(16 << 20);
  tree.write("f", content);
  FileSource source(tree.reference());
  const File file = *source.resolve({}).find("f");
  std::vector<std::future<std::string>> parts;
  for (std::uint64_t i = 0; i < 16; ++i) {
    parts.push_back(std::async(std::launch::async, [&, i] {
      CollectingSink sink(i << 20);
      source.read(file, {i << 20, (i + 1) << 20}, sink, {});
      return sink.bytes;
    }));
  }
  std::string all;
  for (auto& part : parts) all += part.get();
  CHECK((all == content));
}
