// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/lfs_pointer.hpp"

#include "digest/git_blob.hpp"

#include <fmt/format.h>

namespace weightfs::snapshot {

bool is_lfs_pointer(std::string_view blob, const Digest& sha256, std::uint64_t size) {
  return blob == git_blob_id(fmt::format(
                     "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n",
                     sha256.hex(), size));
}

}  // namespace weightfs::snapshot
