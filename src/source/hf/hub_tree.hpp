// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::source {

/// One file as the Hub lists it.
struct HubEntry {
  std::string path;
  std::uint64_t size = 0;        ///< of the content, whatever git keeps of it
  std::string blob;              ///< git's id; of the pointer of a file in LFS
  std::optional<Digest> sha256;  ///< of a file in LFS or Xet
};

struct TreePage {
  std::vector<HubEntry> files;
  std::size_t entries = 0;  ///< the directories, too
};

/// One page of `GET /api/.../tree/REVISION?recursive=true`.
/// Error(kInvalid) for what is no such page. Pure.
[[nodiscard]] TreePage parse_tree_page(std::string_view json);

/// The commit of `GET /api/.../revision/REVISION`. Error(kInvalid). Pure.
[[nodiscard]] std::string parse_commit(std::string_view json);

/// The URL in a Link header (RFC 8288) whose relation is "next"; nullopt where there is none. Pure.
[[nodiscard]] std::optional<std::string> next_link(std::string_view link);

}  // namespace weightfs::source
