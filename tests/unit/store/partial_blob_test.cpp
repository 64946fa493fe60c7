// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/partial_blob.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <algorithm>
#include <csignal>
#include <functional>
#include <thread>

using namespace weightfs;
using namespace weightfs::store;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const Digest kKey = Digest::of("key");
constexpr std::uint64_t kSize = 8 * kBlockSize + 123;

struct Shelf {
  TemporaryDirectory directory;
  ManualClock clock;
  fs::path root = directory.path() / "store";

  [[nodiscard]] std::unique_ptr<Volume> open(const std::string& boot_id = "boot-1") const {
    return open_volume(root, clock, boot_id);
  }
};

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string read_range(const PartialBlob& partial, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\0');
  text.resize(read_at(partial.fd(), offset, std::as_writable_bytes(std::span(text))));
  return text;
}

Errc error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return Errc::kInternal;
}

/// No file may grow beyond this while it lives: a disk that refuses.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

}  // namespace

TEST_CASE("a new partial blob is preallocated and has nothing written") {
  const Shelf shelf;
  const auto store = shelf.open();
  const auto partial = store->partial(kKey, kSize);
  CHECK(partial->written_bytes() == 0);
  CHECK(partial->written_blocks() == std::vector<bool>(9, false));
  struct stat status{};
  REQUIRE(::stat((partial_path(shelf.root, kKey) / "data").c_str(), &status) == 0);
  CHECK(static_cast<std::uint64_t>(status.st_size) == kSize);
  CHECK(static_cast<std::uint64_t>(status.st_blocks) * 512 >= kSize);
  CHECK(store->usage().partial_bytes == kSize);
}

TEST_CASE("what is written can be read through the descriptor") {
  const Shelf shelf;
  const auto store = shelf.open();
  const auto partial = store->partial(kKey, kSize);
  partial->write(kBlockSize + 5, bytes("hello"));
  CHECK(read_range(*partial, kBlockSize + 5, 5) == "hello");
  CHECK(partial->written_bytes() == 0);
  CHECK(read_range(*partial, kSize - 3, 10).size() == 3);
  CHECK(error_of([&] { partial->write(kSize - 1, bytes("xx")); }) == Errc::kInternal);
  CHECK(error_of([&] { partial->write(~0ULL, bytes("x")); }) == Errc::kInternal);
}

TEST_CASE("a fill that was dropped resumes in the same boot with every written block") {
  const Shelf shelf;
  const std::string content = random_bytes(kSize, 1);
  for (const bool restart : {false, true}) {
    CAPTURE(restart);
    auto store = shelf.open();
    {
      const auto partial = store->partial(kKey, kSize);
      partial->write(0, bytes(content).first(3 * kBlockSize));
      partial->set_written({0, 3 * kBlockSize});
    }
    CHECK(store->partial_bytes(kKey) == 3 * kBlockSize);
    if (restart) {
      store.reset();
      store = shelf.open();
      CHECK(store->partial_bytes(kKey) == 3 * kBlockSize);
    }
    CHECK(store->usage().partial_bytes == kSize);
    const auto partial = store->partial(kKey, kSize);
    CHECK(partial->written_bytes() == 3 * kBlockSize);
    CHECK(read_range(*partial, 0, 3 * kBlockSize) == content.substr(0, 3 * kBlockSize));
    partial->discard();
  }
}

TEST_CASE("after another boot only what was flushed is believed") {
  const Shelf shelf;
  const std::string content = random_bytes(kSize, 2);
  {
    const auto store = shelf.open();
    const auto partial = store->partial(kKey, kSize);
    fill(*partial, content);
    CHECK(partial->written_bytes() == kSize);
  }
  {
    const auto store = shelf.open("boot-2");
    CHECK(store->partial_bytes(kKey) == 0);
    const auto partial = store->partial(kKey, kSize);
    CHECK(partial->written_bytes() == 0);
    partial->set_written({kBlockSize, 3 * kBlockSize});
    partial->checkpoint();
    partial->set_written({5 * kBlockSize, kSize});
  }
  const auto store = shelf.open("boot-3");
  CHECK(store->partial_bytes(kKey) == 2 * kBlockSize);
  const auto partial = store->partial(kKey, kSize);
  CHECK(partial->written_blocks() ==
        std::vector<bool>{false, true, true, false, false, false, false, false, false});
}

TEST_CASE("a key with another size is refused until it is discarded") {
  const Shelf shelf;
  const auto store = shelf.open();
  {
    store->partial(kKey, kSize)->set_written({0, kSize});
  }
  CHECK(error_of([&] { (void)store->partial(kKey, kSize + 1); }) == Errc::kInvalid);
  CHECK(store->partial_bytes(kKey) == kSize);
  CHECK(store->usage().partial_bytes == kSize);
  store->discard_partial(kKey);
  CHECK(store->partial_bytes(kKey) == 0);
  CHECK(store->usage().partial_bytes == 0);
  CHECK(store->partial(kKey, kSize + 1)->written_bytes() == 0);
}

TEST_CASE("one key has one filler") {
  const Shelf shelf;
  const auto store = shelf.open();
  auto partial = store->partial(kKey, kSize);
  CHECK(error_of([&] { (void)store->partial(kKey, kSize); }) == Errc::kBusy);
  CHECK(error_of([&] { store->discard_partial(kKey); }) == Errc::kBusy);
  partial->set_written({0, kSize});
  CHECK(store->partial_bytes(kKey) == 0);
  CHECK_NOTHROW(store->partial(Digest::of("other"), 1));
  partial.reset();
  CHECK(store->partial_bytes(kKey) == kSize);
  CHECK_NOTHROW(store->partial(kKey, kSize));
}

TEST_CASE("nothing is known of a key that was never filled") {
  const Shelf shelf;
  const auto store = shelf.open();
  CHECK(store->partial_bytes(kKey) == 0);
  CHECK_NOTHROW(store->discard_partial(kKey));
  CHECK(store->usage().partial_bytes == 0);
}

TEST_CASE("a discarded partial blob leaves nothing") {
  const Shelf shelf;
  const auto store = shelf.open();
  {
    const auto partial = store->partial(kKey, kSize);
    partial->set_written({0, kSize});
    partial->discard();
  }
  CHECK(fs::is_empty(shelf.root / "partial"));
  CHECK(store->usage().partial_bytes == 0);
  CHECK(store->partial(kKey, kSize)->written_bytes() == 0);
}

TEST_CASE("a partial blob that failed its digest goes to quarantine with the reason") {
  const Shelf shelf;
  const auto store = shelf.open();
  {
    const auto partial = store->partial(kKey, 6);
    fill(*partial, "poison");
    partial->quarantine("sha256 is another");
  }
  CHECK(fs::is_empty(shelf.root / "partial"));
  CHECK(store->usage().quarantined == 1);
  CHECK(store->usage().partial_bytes == 0);
  std::string data;
  std::string note;
  for (const auto& entry : fs::directory_iterator(shelf.root / "quarantine")) {
    (entry.path().extension() == ".txt" ? note : data) = read_text(entry.path());
  }
  CHECK(data == "poison");
  CHECK_THAT(note, ContainsSubstring("sha256 is another"));
}

TEST_CASE("only a complete partial blob can be committed, and with the right midstates") {
  const Shelf shelf;
  const auto store = shelf.open();
  const std::string content = random_bytes(kSize, 3);
  const auto partial = store->partial(kKey, kSize);
  partial->write(0, bytes(content));
  partial->set_written({0, kSize - 1});
  CHECK(error_of([&] { (void)partial->commit(Digest::of(content), {}); }) == Errc::kInternal);
  partial->set_written({0, kSize});
  const std::vector<Midstate> too_many(3);
  CHECK_THROWS_AS(partial->commit(Digest::of(content), too_many), Error);
  CHECK_FALSE(store->contains(Digest::of(content)));
  CHECK(content_of(partial->commit(Digest::of(content), {})) == content);
}

TEST_CASE("a blob of whole parts takes the midstate at its end or leaves it out") {
  const Shelf shelf;
  const auto store = shelf.open();
  const std::string content = random_bytes(2 * kPartSize, 4);
  const Hashed hashed = hash(content);
  REQUIRE(hashed.midstates.size() == 1);
  std::vector<Midstate> with_end = hashed.midstates;
  with_end.push_back(Midstate{});
  const auto partial = store->partial(hashed.digest, content.size());
  fill(*partial, content);
  (void)partial->commit(hashed.digest, with_end);
  CHECK(store->midstates(hashed.digest) == hashed.midstates);
}

TEST_CASE("a large blob committed without midstates has no parts until it is verified") {
  const Shelf shelf;
  const auto store = shelf.open();
  const std::string content = random_bytes(kPartSize + 1, 5);
  const Hashed hashed = hash(content);
  const auto partial = store->partial(hashed.digest, content.size());
  fill(*partial, content);
  (void)partial->commit(hashed.digest, {});
  CHECK_FALSE(store->midstates(hashed.digest));
  CHECK(store->verify(hashed.digest, nullptr) == VerifyOutcome::kIntact);
  CHECK(store->midstates(hashed.digest) == hashed.midstates);
}

TEST_CASE("a partial blob with a damaged map or data starts anew, and is removed at open") {
  const Shelf shelf;
  const fs::path folder = partial_path(shelf.root, kKey);
  const std::function<void()> damages[] = {
      [&] { fs::remove(folder / "map"); },
      [&] { write_text(folder / "map", "nonsense"); },
      [&] { fs::resize_file(folder / "data", kSize - 1); },
      [&] { fs::remove(folder / "data"); },
  };
  for (const auto& damage : damages) {
    {
      const auto store = shelf.open();
      {
        store->partial(kKey, kSize)->set_written({0, kSize});
      }
      damage();
      const auto partial = store->partial(kKey, kSize);
      CHECK(partial->written_bytes() == 0);
      partial->set_written({0, kSize});
    }
    damage();
    const auto store = shelf.open();
    CHECK(fs::is_empty(shelf.root / "partial"));
    CHECK(store->usage().partial_bytes == 0);
    CHECK(store->partial_bytes(kKey) == 0);
  }
}

TEST_CASE("a name under partial/ that is not ours is left alone") {
  const Shelf shelf;
  (void)shelf.open();
  write_text(shelf.root / "partial" / "readme", "x");
  (void)shelf.open();
  CHECK(fs::exists(shelf.root / "partial" / "readme"));
}

TEST_CASE("a disk that refuses the space refuses the fill at its start, and keeps nothing") {
  const Shelf shelf;
  const auto store = shelf.open();
  {
    const FileSizeLimit limit(1 << 20);
    CHECK(error_of([&] { (void)store->partial(kKey, 2 << 20); }) == Errc::kIo);
  }
  CHECK(fs::is_empty(shelf.root / "partial"));
  CHECK(store->usage().partial_bytes == 0);
  CHECK(store->partial(kKey, 2 << 20)->written_bytes() == 0);
}

TEST_CASE("a write that the disk refuses says which bytes of which blob") {
  const Shelf shelf;
  const auto store = shelf.open();
  const auto partial = store->partial(kKey, 2 << 20);
  const FileSizeLimit limit(1 << 20);
  CHECK_NOTHROW(partial->write(0, bytes("x")));
  try {
    partial->write((1 << 20) + 5, bytes("xx"));
    FAIL("written");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kIo);
    CHECK_THAT(error.what(), ContainsSubstring("bytes 1048581-1048583"));
    CHECK_THAT(error.what(), ContainsSubstring(kKey.hex()));
  }
}

TEST_CASE("a commit that fails publishes nothing and can be repeated") {
  const Shelf shelf;
  const auto store = shelf.open();
  const std::string content = random_bytes(kPartSize + 5, 6);
  const Hashed hashed = hash(content);
  const auto partial = store->partial(hashed.digest, content.size());
  fill(*partial, content);
  const fs::path folder = blob_path(shelf.root, hashed.digest).parent_path();
  const auto fails = [&] {
    CHECK(error_of([&] { (void)partial->commit(hashed.digest, hashed.midstates); }) == Errc::kIo);
    CHECK_FALSE(store->contains(hashed.digest));
    CHECK_FALSE(store->find(hashed.digest));
    CHECK(store->usage().blobs == 0);
    CHECK(partial->written_bytes() == content.size());
  };
  SECTION("before the index") {
    const FileSizeLimit limit(10);
    fails();
  }
  SECTION("at the folder of the blob") {
    write_text(folder, "a file where a folder should be");
    fails();
    fs::remove(folder);
  }
  SECTION("at the parts") {
    fs::create_directories(parts_path(shelf.root, hashed.digest) / "in the way");
    fails();
    fs::remove_all(parts_path(shelf.root, hashed.digest));
  }
  SECTION("at the data, when the parts are there already") {
    fs::create_directories(blob_path(shelf.root, hashed.digest) / "in the way");
    fails();
    CHECK_FALSE(fs::exists(parts_path(shelf.root, hashed.digest)));
    std::error_code ignored;
    fs::remove_all(blob_path(shelf.root, hashed.digest), ignored);
  }
  CHECK(content_of(partial->commit(hashed.digest, hashed.midstates)) == content);
  CHECK(store->midstates(hashed.digest) == hashed.midstates);
  CHECK(store->verify(hashed.digest, nullptr) == VerifyOutcome::kIntact);
}

TEST_CASE("a partial blob whose commit was interrupted resumes") {
  const Shelf shelf;
  {
    const auto store = shelf.open();
    const auto partial = store->partial(kKey, 7);
    fill(*partial, "content");
  }
  // Parts written, data read-only: the state just before the rename.
  write_text(partial_path(shelf.root, kKey) / "parts", "half");
  ::chmod((partial_path(shelf.root, kKey) / "data").c_str(), 0444);
  const auto store = shelf.open();
  const auto partial = store->partial(kKey, 7);
  CHECK(partial->written_bytes() == 7);
  partial->write(0, bytes("CONTENT"));
  CHECK(content_of(partial->commit(Digest::of("CONTENT"), {})) == "CONTENT");
}

TEST_CASE("a clone is all or nothing, and of the same size only") {
  const Shelf shelf;
  const auto store = shelf.open();
  const auto partial = store->partial(kKey, 7);
  partial->write(0, bytes("unmoved"));
  write_text(shelf.directory.path() / "longer", "contents");
  write_text(shelf.directory.path() / "same", "content");
  CHECK_FALSE(partial->clone_from(open_file(shelf.directory.path() / "longer", O_RDONLY)));
  CHECK(read_range(*partial, 0, 10) == "unmoved");
  const bool cloned = partial->clone_from(open_file(shelf.directory.path() / "same", O_RDONLY));
  CHECK(read_range(*partial, 0, 10) == (cloned ? "content" : "unmoved"));
  CHECK(partial->written_bytes() == 0);
}

TEST_CASE("data that somebody resized is not published") {
  const Shelf shelf;
  const auto store = shelf.open();
  const auto partial = store->partial(kKey, 7);
  fill(*partial, "content");
  fs::resize_file(partial_path(shelf.root, kKey) / "data", 8);
  CHECK(error_of([&] { (void)partial->commit(Digest::of("content"), {}); }) == Errc::kInternal);
  CHECK_FALSE(store->contains(Digest::of("content")));
}

TEST_CASE("many threads fill one blob") {
  const Shelf shelf;
  const auto store = shelf.open();
  const std::string content = random_bytes(64 * kBlockSize, 7);
  const auto partial = store->partial(kKey, content.size());
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t first = 0; first < 4; ++first) {
      threads.emplace_back([&, first] {
        for (std::uint64_t block = first; block < 64; block += 4) {
          const std::uint64_t offset = block * kBlockSize;
          partial->write(offset, bytes(content).subspan(offset, kBlockSize));
          partial->set_written({offset, offset + kBlockSize});
          if (read_range(*partial, offset, kBlockSize) != content.substr(offset, kBlockSize)) {
            throw std::runtime_error("wrong bytes");
          }
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 3; ++i) partial->checkpoint();
    });
  }
  CHECK(partial->written_bytes() == content.size());
  CHECK(content_of(partial->commit(Digest::of(content), {})) == content);
}
