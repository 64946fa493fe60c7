// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/selection.hpp"

#include <fnmatch.h>
#include <algorithm>

namespace weightfs::snapshot {

namespace {

bool any_matches(const std::vector<std::string>& patterns, const std::string& path) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    const std::string whole = pattern.ends_with('/') ? pattern + "*" : pattern;
    return ::fnmatch(whole.c_str(), path.c_str(), FNM_NOESCAPE) == 0;
  });
}

}  // namespace

bool Selection::takes(std::string_view path) const {
  const std::string text(path);
  return (allow.empty() || any_matches(allow, text)) && !any_matches(ignore, text);
}

}  // namespace weightfs::snapshot
