// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/release_argument.hpp"

#include "base/error.hpp"
#include "cli/exit_code.hpp"
#include "snapshot/release.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::cli {

std::string release_argument(const std::vector<std::string>& parts,
                             const std::vector<std::string>& overlays) {
  std::vector<snapshot::ReleasePart> all;
  try {
    for (const std::string& part : parts) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos) {
        throw UsageError(fmt::format("--part {}: it is written PART=SOURCE", part));
      }
      all.push_back({.name = part.substr(0, equals),
                     .source = snapshot::Reference::parse(part.substr(equals + 1))});
    }
    for (const std::string& overlay : overlays) {
      const auto part = std::ranges::find(all, overlay, &snapshot::ReleasePart::name);
      if (part == all.end()) {
        throw UsageError(fmt::format("--overlay {}: there is no such part", overlay));
      }
      part->overlay = true;
    }
    return snapshot::Release(std::move(all)).text();
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace weightfs::cli
