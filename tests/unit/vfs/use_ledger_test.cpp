// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/use_ledger.hpp"

#include <catch2/catch_test_macros.hpp>

#include <memory>

namespace weightfs::vfs {
namespace {

using namespace std::chrono_literals;

class HandSetClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return time; }
  [[nodiscard]] std::chrono::system_clock::time_point wall() const noexcept override { return {}; }
  TimePoint time;
};

snapshot::Snapshot model(const std::string& name) {
  std::vector<snapshot::File> files;
  for (const char* path : {"config.json", "w1.safetensors", "w2.safetensors"}) {
    files.push_back({.path = path, .size = 10, .sha256 = Digest::of(name + path)});
  }
  return {"file:///" + name, "", std::move(files)};
}

constexpr std::size_t kConfig = 0;
constexpr std::size_t kFirst = 1;
constexpr std::size_t kSecond = 2;

/// How many references the opens of a loader are, each followed by its close.
int references(UseLedger& ledger, const snapshot::Snapshot& model, const std::string& consumer,
               const std::vector<std::size_t>& files) {
  int count = 0;
  for (const std::size_t file : files) {
    if (ledger.opened(model, file, consumer)) ++count;
    ledger.closed(model.key());
  }
  return count;
}

TEST_CASE("shards that are opened one by one are one reference, however long it takes") {
  HandSetClock clock;
  UseLedger ledger(clock);
  const auto m = model("m");
  CHECK(references(ledger, m, "pod", {kConfig, kFirst}) == 1);
  clock.time += 10min;
  CHECK(references(ledger, m, "pod", {kSecond}) == 0);
}

TEST_CASE("each consumer and each snapshot has uses of its own") {
  HandSetClock clock;
  UseLedger ledger(clock);
  const auto m = model("m");
  const auto other = model("other");
  CHECK(references(ledger, m, "pod-1", {kFirst}) == 1);
  CHECK(references(ledger, m, "pod-2", {kFirst}) == 1);
  CHECK(references(ledger, other, "pod-1", {kFirst}) == 1);
}

TEST_CASE("whoever only looks at configs makes no reference") {
  HandSetClock clock;
  UseLedger ledger(clock);
  const auto m = model("m");
  CHECK(references(ledger, m, "pod", {kConfig, kConfig}) == 0);
  clock.time += 1h;
  CHECK(references(ledger, m, "pod", {kConfig, kFirst}) == 1);
}

TEST_CASE("a consumer that opens a file again after it was gone has come back") {
  HandSetClock clock;
  UseLedger ledger(clock);
  const auto m = model("m");
  CHECK(references(ledger, m, "pod", {kConfig, kFirst, kFirst}) == 1);  // the header, then all
  clock.time += UseLedger::kPause;
  CHECK(references(ledger, m, "pod", {kConfig, kFirst, kSecond}) == 1);
  clock.time += UseLedger::kPause;
  CHECK(references(ledger, m, "pod", {kFirst}) == 1);
}

TEST_CASE("as long as somebody has it open, opening a file again is the same use") {
  HandSetClock clock;
  UseLedger ledger(clock);
  const auto m = model("m");
  ledger.adopted(m.key(), 1);  // by an earlier daemon
  CHECK(references(ledger, m, "pod", {kFirst}) == 1);
  clock.time += 1h;
  CHECK(references(ledger, m, "pod", {kFirst}) == 0);
  ledger.closed(m.key());
  clock.time += UseLedger::kPause;
  CHECK(references(ledger, m, "pod", {kFirst}) == 1);
}

TEST_CASE("a file that is not complete is missed once in each use") {
  HandSetClock clock;
  UseLedger ledger(clock);
  const auto m = model("m");
  const auto missed = [&](std::size_t file) {
    (void)ledger.opened(m, file, "pod");
    return ledger.missed(m.key(), file, "pod");
  };
  CHECK(missed(kFirst));
  CHECK_FALSE(missed(kFirst));
  CHECK(missed(kSecond));
  for (int i = 0; i < 3; ++i) ledger.closed(m.key());
  ledger.closed(m.key());  // of one that nobody knows
  clock.time += UseLedger::kPause;
  CHECK(missed(kFirst));
}

}  // namespace
}  // namespace weightfs::vfs
