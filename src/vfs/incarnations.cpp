// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/incarnations.hpp"

#include <string>
#include <string_view>

namespace weightfs::vfs {

namespace {
constexpr std::string_view kPrefix = "retire ";
}

Incarnations::Incarnations(SessionLog& log) : log_(log) {
  counts_.with([&](Counts& counts) {
    for (const std::string& record : log_.records()) {
      if (!record.starts_with(kPrefix)) continue;
      const auto key = Digest::parse(std::string_view(record).substr(kPrefix.size()));
      if (key) ++counts[*key];
    }
  });
}

void Incarnations::retire(const Digest& content_key) {
  // First for this daemon: that must not fail.
  counts_.with([&](Counts& counts) { ++counts[content_key]; });
  log_.append(std::string(kPrefix) + content_key.hex());
}

std::uint32_t Incarnations::count(const Counts& counts, const Digest& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace weightfs::vfs
