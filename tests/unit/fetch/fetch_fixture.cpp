// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch_fixture.hpp"

#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace weightfs::fetch {

namespace {

std::filesystem::path make_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "weightfs-fetch-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  return name;
}

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void RecordingObserver::on_complete(const Target& target, const store::Blob& blob) {
  if (when_complete) when_complete(target);
  state_.with([&](State& state) {
    state.learned.emplace(target.key(), blob.digest);
    state.completed.push_back(target.file().path);
    state.last_digest = blob.digest;
    state.shown.erase(target.key());
  });
}

std::optional<Digest> RecordingObserver::learned(const Target& target) const {
  return state_.with([&](const State& state) -> std::optional<Digest> {
    const auto found = state.learned.find(target.key());
    return found == state.learned.end() ? std::nullopt : std::optional(found->second);
  });
}

void RecordingObserver::on_proven(const Target& target) {
  state_.with([&](State& state) { state.shown.erase(target.key()); });
}

void RecordingObserver::on_shown(const Target& target, Place place) {
  state_.with([&](State& state) { state.shown[target.key()] = place; });
}

std::optional<Place> RecordingObserver::shown(const Target& target) const {
  return state_.with([&](const State& state) -> std::optional<Place> {
    const auto found = state.shown.find(target.key());
    return found == state.shown.end() ? std::nullopt : std::optional(found->second);
  });
}

void RecordingObserver::on_disowned(const Target& target) {
  if (when_disowned) when_disowned(target);
  state_.with([&](State& state) {
    state.disowned.push_back(target.file().path);
    state.shown.erase(target.key());
  });
}

void RecordingObserver::on_failed(const Target& target, const Error& error) {
  if (then) then(target);
  state_.with([&](State& state) { state.failed.push_back(error.code()); });
}

void RecordingObserver::on_loader(const Target&) {
  state_.with([](State& state) { ++state.loaders; });
}

std::vector<std::string> RecordingObserver::completed() const {
  return state_.with([](const State& state) { return state.completed; });
}

std::vector<std::string> RecordingObserver::disowned() const {
  return state_.with([](const State& state) { return state.disowned; });
}

std::vector<Errc> RecordingObserver::failed() const {
  return state_.with([](const State& state) { return state.failed; });
}

unsigned RecordingObserver::loaders() const {
  return state_.with([](const State& state) { return state.loaders; });
}

std::optional<Digest> RecordingObserver::last_digest() const {
  return state_.with([](const State& state) { return state.last_digest; });
}

PendingRead::PendingRead(const FillPtr& fill, std::uint64_t offset, std::uint64_t size)
    : id_(fill->read(offset, size, [promise = promise_](const ReadResult& result) {
        promise->set_value({.bytes = std::string(reinterpret_cast<const char*>(result.data.data()),
                                                 result.data.size()),
                            .error = result.error});
      })) {
}

bool PendingRead::done() const {
  return outcome_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::string PendingRead::wait() {
  if (outcome_.wait_for(kPatience) != std::future_status::ready) {
    throw Error(Errc::kTimedOut, "the read was never answered");
  }
  Outcome outcome = outcome_.get();
  if (outcome.error) throw *outcome.error;
  return std::move(outcome.bytes);
}

Errc PendingRead::failure() {
  try {
    (void)wait();
  } catch (const Error& error) {
    return error.code();
  }
  throw std::runtime_error("the read should have failed");
}

FetchFixture::FetchFixture(const std::filesystem::path& at)
    : directory(at.empty() ? make_directory() : at), own_directory_(at.empty()) {
  using std::chrono::milliseconds;
  options.retry = {.first_delay = milliseconds(2), .max_delay = milliseconds(4)};
  options.checkpoint_interval = milliseconds(50);
  store = store::Store::open({.directories = {directory / "store"}, .boot_id = "boot"}, clock,
                             Log::silent());
}

FetchFixture::~FetchFixture() {
  stop();
  store.reset();
  std::error_code ignored;
  std::filesystem::remove_all(own_directory_ ? directory : directory / "store", ignored);
}

void FetchFixture::start() {
  stop();
  fetcher_ = std::make_unique<Fetcher>(*store, clock, observer, options, Log::silent());
}

Target FetchFixture::target(const snapshot::File& file) const {
  return {.snapshot = std::make_shared<const snapshot::Snapshot>("https://host/model/", "1",
                                                                 std::vector{file}),
          .file_index = 0,
          .source = source};
}

bool FetchFixture::reads_right(const FillPtr& fill, ByteRange range) {
  return PendingRead(fill, range.begin, range.size()).wait() == content(fill->target(), range);
}

}  // namespace weightfs::fetch
