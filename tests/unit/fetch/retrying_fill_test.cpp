// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/retrying_fill.hpp"

#include "base/error.hpp"
#include "snapshot/snapshot.hpp"
#include "source/source.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weightfs::fetch {
namespace {

/// A source that says whether it has others.
class Mirrors final : public source::Source {
 public:
  snapshot::Snapshot resolve(std::stop_token /*stop*/) override { return {"", "", {}}; }
  void read(const snapshot::File&, ByteRange, source::Sink&, std::stop_token) override {}
  [[nodiscard]] std::optional<Fd> open_local(const snapshot::File&) override { return {}; }
  [[nodiscard]] std::string describe() const override { return "mirrors"; }
  [[nodiscard]] bool has_others(const snapshot::File&) const override { return others; }
  bool others = true;
};

/// A fill that a test ends.
class Double final : public Fill {
 public:
  explicit Double(Target target) : target_(std::move(target)) {}

  ReadId read(std::uint64_t, std::uint64_t, ReadDone done) override {
    if (error_) {
      done({.data = {}, .error = error_});
      return 0;
    }
    parked[++last_] = std::move(done);
    return last_;
  }
  void cancel(ReadId id) override { cancelled.push_back(id); }
  void want(Want want) override { wanted = std::max(wanted, want); }
  void precede(const Precedence& precedence) override { due = precedence.due; }
  void set_pace(std::shared_ptr<RateLimiter>) override {}
  void on_end(std::function<void()> callback) override { ends.push_back(std::move(callback)); }
  [[nodiscard]] FillProgress progress() const override {
    return {.state = error_ ? FillState::kFailed : FillState::kFilling};
  }
  [[nodiscard]] const Target& target() const override { return target_; }
  [[nodiscard]] std::optional<Error> error() const override { return error_; }

  void fail(Errc code) {
    error_ = Error(code, "failed");
    for (const auto& [id, done] : std::exchange(parked, {})) done({.data = {}, .error = error_});
    for (const auto& callback : std::exchange(ends, {})) callback();
  }
  void answer() {
    static constexpr std::array<std::byte, 3> kBytes{};
    for (const auto& [id, done] : std::exchange(parked, {})) done({.data = kBytes, .error = {}});
  }

  std::map<ReadId, ReadDone> parked;
  std::vector<ReadId> cancelled;
  std::vector<std::function<void()>> ends;
  Want wanted = Want::kDemand;
  std::int64_t due = 0;

 private:
  const Target target_;
  std::optional<Error> error_;
  ReadId last_ = 10;
};

struct Fixture {
  std::shared_ptr<Mirrors> mirrors = std::make_shared<Mirrors>();
  Target target{.snapshot = std::make_shared<const snapshot::Snapshot>(
                    "x", "", std::vector<snapshot::File>{{.path = "a", .size = 3}}),
                .file_index = 0,
                .source = mirrors};
  std::shared_ptr<Double> first = std::make_shared<Double>(target);
  std::shared_ptr<Double> second = std::make_shared<Double>(target);
  int made = 0;
  std::shared_ptr<RetryingFill> fill = std::make_shared<RetryingFill>(first, [this] {
    ++made;
    return second;
  });
  std::vector<std::string> events;

  ReadId read() {
    return fill->read(0, 3, [this](const ReadResult& result) {
      events.emplace_back(result.error ? "error" : "bytes");
    });
  }
};

using Events = std::vector<std::string>;

TEST_CASE_METHOD(Fixture, "who was given nothing does not learn that the bytes were wrong") {
  fill->want(Want::kFile);
  fill->precede({.due = 7, .priority = 0});
  read();
  read();
  fill->on_end([this] { events.emplace_back("end"); });
  first->fail(Errc::kCorrupt);
  CHECK(events.empty());
  CHECK(made == 1);
  CHECK(fill->progress().state == FillState::kFilling);
  CHECK(second->wanted == Want::kFile);
  CHECK(second->due == 7);
  CHECK(second->parked.size() == 2);
  second->answer();
  CHECK(events == Events{"bytes", "bytes"});
  second->fail(Errc::kCorrupt);  // now it was given some
  CHECK(events == Events{"bytes", "bytes", "end"});
  CHECK(fill->error().has_value());
}

TEST_CASE_METHOD(Fixture, "who has bytes learns of it") {
  read();
  first->answer();
  read();
  first->fail(Errc::kCorrupt);
  CHECK(events == Events{"bytes", "error"});
  CHECK(made == 0);
}

TEST_CASE_METHOD(Fixture, "other failures, and those without another source, are what they are") {
  SECTION("another failure") {
    read();
    first->fail(Errc::kTimedOut);
  }
  SECTION("no other source") {
    mirrors->others = false;
    read();
    first->fail(Errc::kCorrupt);
  }
  CHECK(events == Events{"error"});
  CHECK(made == 0);
}

TEST_CASE_METHOD(Fixture, "a read is cancelled where it waits") {
  const ReadId id = read();
  fill->cancel(id);
  CHECK(first->cancelled == std::vector<ReadId>{11});
  first->fail(Errc::kCorrupt);
  fill->cancel(id);
  CHECK(second->cancelled == std::vector<ReadId>{11});
  fill->cancel(id + 1);
  second->answer();  // as every fill does in the end
}

TEST_CASE_METHOD(Fixture, "who waits for the end of a fill does not hold it") {
  fill->on_end([this] { events.emplace_back("end"); });
  const std::weak_ptr<RetryingFill> watched = fill;
  fill.reset();
  CHECK(watched.expired());
  first->fail(Errc::kCorrupt);
  CHECK(events == Events{"end"});
  CHECK(made == 0);
}

}  // namespace
}  // namespace weightfs::fetch
