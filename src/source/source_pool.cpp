// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/source_pool.hpp"

#include "snapshot/reference.hpp"
#include "source/source_factory.hpp"

namespace weightfs::source {

namespace {

/// Beyond this, sources that nobody reads from are let go; what they learned is learned again.
constexpr std::size_t kMaxSources = 1024;

}  // namespace

SourcePtr SourcePool::get(const std::string& reference) {
  const auto parsed = snapshot::Reference::parse(reference);
  return sources_.with([&](std::map<std::string, SourcePtr>& sources) {
    const auto known = sources.find(parsed.text());
    if (known != sources.end()) return known->second;
    if (sources.size() >= kMaxSources) {
      std::erase_if(sources, [](const auto& entry) { return entry.second.use_count() == 1; });
    }
    return sources.emplace(parsed.text(), make_source(parsed, web_, hubs_)).first->second;
  });
}

}  // namespace weightfs::source
