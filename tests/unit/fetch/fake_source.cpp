// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fake_source.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cstring>

namespace weightfs::fetch {

namespace {

constexpr std::uint64_t kChunk = 16 << 10;

/// SplitMix64's finaliser: every position has a word of its own.
std::uint64_t mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace

std::string FakeSource::content(const std::string& path, ByteRange range) {
  const std::uint64_t seed = std::hash<Digest>()(Digest::of(path));
  const std::uint64_t begin = range.begin / 8 * 8;
  std::string text((range.end - begin + 7) / 8 * 8, '\0');
  for (std::size_t i = 0; i < text.size(); i += 8) {
    const std::uint64_t word = mix(seed + begin + i);
    std::memcpy(text.data() + i, &word, sizeof word);
  }
  return text.substr(range.begin - begin, range.size());
}

snapshot::File FakeSource::file(const std::string& path, std::uint64_t size) {
  snapshot::File made;
  made.path = path;
  made.size = size;
  made.sha256 = Digest::of(content(path, {0, size}));
  return made;
}

void FakeSource::on_chunk(OnChunk hook) {
  state_.with([&](State& state) { state.hook = std::move(hook); });
}

std::vector<FakeSource::Request> FakeSource::requests() const {
  return state_.with([](const State& state) { return state.requests; });
}

std::vector<ByteRange> FakeSource::not_once(const snapshot::File& file) const {
  auto ranges = state_.with([&](const State& state) {
    const auto found = state.delivered.find(file.path);
    return found == state.delivered.end() ? std::vector<ByteRange>() : found->second;
  });
  std::sort(ranges.begin(), ranges.end());
  std::vector<ByteRange> wrong;
  std::uint64_t end = 0;
  for (const ByteRange& range : ranges) {
    if (range.begin > end) wrong.push_back({end, range.begin});
    if (range.begin < end) wrong.push_back({range.begin, std::min(end, range.end)});
    end = std::max(end, range.end);
  }
  if (end < file.size) wrong.push_back({end, file.size});
  return wrong;
}

std::uint64_t FakeSource::delivered() const {
  return state_.with([](const State& state) {
    std::uint64_t bytes = 0;
    for (const auto& [path, ranges] : state.delivered) {
      for (const ByteRange& range : ranges) bytes += range.size();
    }
    return bytes;
  });
}

unsigned FakeSource::most_at_once() const {
  return state_.with([](const State& state) { return state.most; });
}

snapshot::Snapshot FakeSource::resolve(std::stop_token) {
  throw Error(Errc::kUnsupported, "a fake source has no listing");
}

void FakeSource::read(const snapshot::File& file, ByteRange range, source::Sink& sink,
                      std::stop_token stop) {
  const OnChunk hook = state_.with([&](State& state) {
    state.requests.push_back({file.path, range});
    state.most = std::max(state.most, ++state.now);
    return state.hook;
  });
  struct Leave {
    Synchronized<State>& state;
    ~Leave() {
      state.with([](State& left) { --left.now; });
    }
  } leave{state_};
  for (std::uint64_t at = sends_ranges ? range.begin : 0; at < range.end;) {
    const std::uint64_t limit = at < range.begin ? range.begin : range.end;
    const ByteRange chunk{at, std::min(limit, at + kChunk)};
    if (hook) hook(file, chunk, stop);
    if (stop.stop_requested()) throw Error(Errc::kCancelled, "stopped");
    if (at < range.begin) {
      sink.skipped(chunk.size());
      at = chunk.end;
      continue;
    }
    const std::string bytes = content(file.path, chunk);
    state_.with([&](State& state) { state.delivered[file.path].push_back(chunk); });
    sink.write(at, std::as_bytes(std::span(bytes)));
    at = chunk.end;
  }
}

std::optional<Fd> FakeSource::open_local(const snapshot::File& file) {
  return local ? local(file) : std::nullopt;
}

}  // namespace weightfs::fetch
