// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/small_files.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::source {

namespace {

constexpr std::uint64_t kMaxBytes = 32 << 20;
constexpr std::size_t kMaxContents = 4096;
constexpr std::size_t kMaxDigests = 200'000;

}  // namespace

Digest SmallFiles::add(const std::string& blob, std::string content) {
  const Digest sha256 = Digest::of(content);
  state_.with([&](State& state) {
    if (state.digests.size() >= kMaxDigests) state.digests.clear();
    state.digests.insert_or_assign(blob, sha256);
    if (content.size() > kMaxBytes) return;
    const auto known = std::ranges::find(state.contents, sha256, &Kept::sha256);
    if (known != state.contents.end()) return;
    state.bytes += content.size();
    state.contents.push_front({sha256, std::make_shared<const std::string>(std::move(content))});
    while (state.bytes > kMaxBytes || state.contents.size() > kMaxContents) {
      state.bytes -= state.contents.back().content->size();
      state.contents.pop_back();
    }
  });
  return sha256;
}

std::optional<Digest> SmallFiles::digest(const std::string& blob) const {
  return state_.with([&](const State& state) -> std::optional<Digest> {
    const auto found = state.digests.find(blob);
    return found == state.digests.end() ? std::nullopt : std::optional(found->second);
  });
}

SmallFiles::Content SmallFiles::content(const Digest& sha256) const {
  return state_.with([&](const State& state) -> Content {
    const auto found = std::ranges::find(state.contents, sha256, &Kept::sha256);
    return found == state.contents.end() ? nullptr : found->content;
  });
}

}  // namespace weightfs::source
