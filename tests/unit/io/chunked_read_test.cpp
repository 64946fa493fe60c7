// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "io/chunked_read.hpp"

#include "base/error.hpp"
#include "io/aligned_buffer.hpp"
#include "io/pread_queue.hpp"
#include "io/ring.hpp"
#include "io/scratch_file.hpp"
#include "io/stale_file_error.hpp"

#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using weightfs::Errc;
using weightfs::Error;
using weightfs::Fd;
using namespace weightfs::io;
using weightfs::test::pattern;
using weightfs::test::ScratchFile;

namespace {

constexpr std::size_t kChunk = 64 << 10;

/// Reads like PreadQueue, but completes the newest first, and lets a test tamper with each answer.
class TamperedQueue final : public ReadQueue {
 public:
  using Tamper = std::function<int(std::size_t call, int result, std::span<std::byte> buffer)>;
  explicit TamperedQueue(Tamper tamper) : tamper_(std::move(tamper)) {}

  void submit(const Fd& fd, std::uint64_t offset, std::span<std::byte> buffer,
              std::uint64_t tag) override {
    pending_.push_back({fd.value(), offset, buffer, tag});
  }
  std::optional<Completion> wait(const std::stop_token&) override {
    const Pending next = pending_.back();
    pending_.pop_back();
    const auto got =
        ::pread(next.fd, next.buffer.data(), next.buffer.size(), static_cast<off_t>(next.offset));
    const int result = got < 0 ? -errno : static_cast<int>(got);
    return Completion{next.tag, tamper_(calls_++, result, next.buffer)};
  }
  bool drain(std::chrono::milliseconds) noexcept override {
    pending_.clear();
    return true;
  }

 private:
  struct Pending {
    int fd;
    std::uint64_t offset;
    std::span<std::byte> buffer;
    std::uint64_t tag;
  };
  Tamper tamper_;
  std::vector<Pending> pending_;
  std::size_t calls_ = 0;
};

struct Outcome {
  std::string bytes;
  std::optional<Errc> error;
  bool stale = false;
};

Outcome read_all(ReadQueue& queue, DirectFile& file, weightfs::ByteRange range) {
  AlignedBuffer buffer(4 * kChunk);
  Outcome outcome;
  try {
    ChunkedRead(queue, buffer.span(), kChunk, file, range)
        .run(
            [&](std::uint64_t offset, std::span<const std::byte> data) {
              REQUIRE(offset == range.begin + outcome.bytes.size());
              outcome.bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
            },
            {});
  } catch (const StaleFileError& error) {
    outcome.stale = true;
    outcome.error = error.code();
  } catch (const Error& error) {
    outcome.error = error.code();
  }
  static_cast<void>(queue.drain(1s));
  return outcome;
}

}  // namespace

TEST_CASE("short, interrupted and refused reads are asked for again") {
  const std::string content = pattern(11 * kChunk + 333);
  const ScratchFile scratch(std::filesystem::current_path(), content);
  const std::vector<std::pair<std::string, TamperedQueue::Tamper>> rows = {
      {"nothing wrong", [](auto, int result, auto) { return result; }},
      {"every other is interrupted",
       [](std::size_t call, int result, auto) { return call % 2 == 0 ? -EINTR : result; }},
      {"try again",
       [](std::size_t call, int result, auto) { return call == 3 ? -EAGAIN : result; }},
      {"half of each, not aligned",
       [](auto, int result, auto) { return result > 9'000 ? result / 2 + 1 : result; }},
      {"the first direct read is refused",
       [](std::size_t call, int result, auto) { return call == 0 ? -EINVAL : result; }},
      {"all direct reads that were in flight are refused",
       [asked = std::set<const std::byte*>()](auto, int result, auto buffer) mutable {
         return asked.insert(buffer.data()).second ? -EINVAL : result;
       }},
  };
  for (const auto& [name, tamper] : rows) {
    for (const weightfs::ByteRange range : {weightfs::ByteRange{0, content.size()},
                                            weightfs::ByteRange{4'099, content.size() - 77}}) {
      INFO(name);
      DirectFile file(scratch.open());
      TamperedQueue queue(tamper);
      const Outcome outcome = read_all(queue, file, range);
      CHECK_FALSE(outcome.error);
      CHECK((outcome.bytes == content.substr(range.begin, range.size())));
    }
  }
}

TEST_CASE("a read that fails delivers what comes before it, and nothing after") {
  const std::string content = pattern(8 * kChunk);
  const ScratchFile scratch(std::filesystem::current_path(), content);
  DirectFile file(scratch.open());
  // Newest first: call 1 is the third chunk of the four that are in flight.
  TamperedQueue failing(
      [](std::size_t call, int result, auto) { return call == 1 ? -EIO : result; });
  const Outcome failed = read_all(failing, file, {0, content.size()});
  CHECK(failed.error == Errc::kIo);
  CHECK((failed.bytes == content.substr(0, 2 * kChunk)));

  TamperedQueue stale(
      [](std::size_t call, int result, auto) { return call == 3 ? -ESTALE : result; });
  const Outcome gone = read_all(stale, file, {0, content.size()});
  CHECK(gone.stale);
  CHECK(gone.bytes.empty());
}

TEST_CASE("a stop wakes a ring that waits for a read which does not end") {
  const auto ring = Ring::create(2);
  if (!ring) SKIP("no io_uring here");
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd in(ends[0]);
  const Fd out(ends[1]);
  std::byte buffer[16];
  ring->submit(in, 0, buffer, 7);
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  const auto start = std::chrono::steady_clock::now();
  CHECK_FALSE(ring->wait(stop.get_token()));
  CHECK(ring->drain(5s));
  CHECK(std::chrono::steady_clock::now() - start < 5s);

  // The wake-up does not outlast the stop.
  ring->submit(in, 0, buffer, 8);
  std::jthread writer([&] { CHECK(::write(out.value(), "abc", 3) == 3); });
  const auto completion = ring->wait({});
  REQUIRE(completion);
  CHECK(completion->tag == 8);
  CHECK(completion->result == 3);
}

TEST_CASE("a buffer is aligned, movable, and empty after it gave its pages back") {
  AlignedBuffer buffer(kChunk + 1);
  CHECK(buffer.span().size() == kChunk + 4096);
  CHECK(reinterpret_cast<std::uintptr_t>(buffer.span().data()) % (2 << 20) == 0);
  buffer.span().front() = std::byte{7};
  AlignedBuffer other = std::move(buffer);
  CHECK(other.span().front() == std::byte{7});
  other.release_pages();
  CHECK(other.span().front() == std::byte{0});
}
