// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch_fixture.hpp"

#include <catch2/catch_test_macros.hpp>

#include <random>
#include <thread>

namespace weightfs::fetch {
namespace {

constexpr unsigned kThreads = 8;
constexpr unsigned kReads = 150;  // per thread

struct Outcome {
  std::atomic<unsigned> right = 0;
  std::atomic<unsigned> wrong = 0;
  std::atomic<unsigned> cancelled = 0;
  std::atomic<unsigned> failed = 0;
};

/// Readers that open, read at random places, give up now and then, and leave, until each has read
/// its share.
void run_readers(FetchFixture& fixture, const std::vector<Target>& targets, Outcome& outcome) {
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&fixture, &targets, &outcome, t] {
      std::mt19937_64 random(1000 + t);
      FillPtr fill;
      const Target* target = nullptr;
      for (unsigned i = 0; i < kReads; ++i) {
        if (!fill || random() % 8 == 0) {
          target = &targets[random() % targets.size()];
          fill = fixture.fetcher().fill(*target);
          if (random() % 4 == 0) fill->want(random() % 2 ? Want::kFile : Want::kBackground);
        }
        const std::uint64_t size = target->file().size;
        const std::uint64_t at = random() % size;
        const ByteRange range{at, std::min(size, at + 1 + random() % (512 * kKiB))};
        PendingRead read(fill, range.begin, range.size());
        if (random() % 16 == 0) fill->cancel(read.id());
        try {
          (read.wait() == FetchFixture::content(*target, range) ? outcome.right : outcome.wrong)++;
        } catch (const Error& error) {
          (error.code() == Errc::kCancelled ? outcome.cancelled : outcome.failed)++;
        }
        if (random() % 10 == 0) fill.reset();
      }
    });
  }
}

std::vector<Target> targets(FetchFixture& fixture) {
  return {fixture.target("model-1.safetensors", 9 * kMiB + 1),
          fixture.target("model-2.safetensors", 6 * kMiB), fixture.target("config.json", 70'001)};
}

TEST_CASE_METHOD(FetchFixture, "eight threads read at random: every byte right, every byte once") {
  options.part_size = kMiB;
  start();
  const auto files = targets(*this);
  Outcome outcome;
  run_readers(*this, files, outcome);
  CHECK(outcome.wrong == 0);
  CHECK(outcome.failed == 0);
  CHECK(outcome.right + outcome.cancelled == kThreads * kReads);
  for (const Target& target : files) {
    const FillPtr fill = fetcher().fill(target);
    fill->want(Want::kFile);
    CHECK(eventually([&] { return fill->progress().state == FillState::kComplete; }));
    CHECK(source->not_once(target.file()).empty());
  }
}

TEST_CASE_METHOD(FetchFixture, "the same while connections break") {
  options.part_size = kMiB;
  const auto chunks = std::make_shared<std::atomic<unsigned>>(0);
  source->on_chunk([chunks](const auto&, ByteRange, std::stop_token) {
    if (++*chunks % 37 == 0) throw TransientError(Errc::kUnavailable, "reset");
  });
  start();
  const auto files = targets(*this);
  Outcome outcome;
  run_readers(*this, files, outcome);
  CHECK(outcome.wrong == 0);
  CHECK(outcome.failed == 0);
  for (const Target& target : files) {
    const FillPtr fill = fetcher().fill(target);
    fill->want(Want::kFile);
    CHECK(eventually([&] { return fill->progress().state == FillState::kComplete; }));
  }
}

TEST_CASE_METHOD(FetchFixture, "the same through two megabytes of memory") {
  options.keep = Keep::kMemoryOnly;
  options.stream_memory = 2 * kMiB;
  options.file_ahead_after = kMiB;
  start();
  Outcome outcome;
  run_readers(*this, targets(*this), outcome);
  CHECK(outcome.wrong == 0);
  CHECK(outcome.failed == 0);
  CHECK(outcome.right > 0);
  CHECK(eventually([&] { return fetcher().fills().empty(); }));
  CHECK(fetcher().streaming_bytes() == 0);
}

TEST_CASE_METHOD(FetchFixture, "the same while the fetcher starts anew under the readers' feet") {
  options.part_size = kMiB;
  const auto files = targets(*this);
  std::mt19937_64 random(5);
  for (int round = 0; round < 8; ++round) {
    start();
    std::vector<FillPtr> fills;
    std::vector<std::pair<std::size_t, ByteRange>> ranges;
    std::vector<std::unique_ptr<PendingRead>> reads;
    for (int i = 0; i < 24; ++i) {
      const std::size_t which = random() % files.size();
      const std::uint64_t size = files[which].file().size;
      const std::uint64_t at = random() % size;
      const ByteRange range{at, std::min(size, at + 200'000)};
      fills.push_back(fetcher().fill(files[which]));
      ranges.emplace_back(which, range);
      reads.push_back(std::make_unique<PendingRead>(fills.back(), range.begin, range.size()));
    }
    (void)reads[0]->wait();
    stop();
    for (std::size_t i = 1; i < reads.size(); ++i) {
      try {
        const std::string bytes = reads[i]->wait();
        CHECK((bytes == content(files[ranges[i].first], ranges[i].second)));
      } catch (const Error& error) {
        CHECK(error.code() == Errc::kCancelled);
      }
    }
  }
}

}  // namespace
}  // namespace weightfs::fetch
