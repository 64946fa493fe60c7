// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/blob_listing.hpp"

#include "store/layout.hpp"

#include <system_error>

namespace weightfs::store {

namespace fs = std::filesystem;

std::vector<ListedBlob> list_blobs(const fs::path& store_directory) {
  std::vector<ListedBlob> blobs;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator file(Layout(store_directory).blobs(), options, error);
  for (const fs::recursive_directory_iterator end; !error && file != end; file.increment(error)) {
    const auto digest = digest_of_name(file->path().filename().string());
    std::error_code gone;
    if (!digest || !file->is_regular_file(gone)) continue;
    const std::uint64_t size = file->file_size(gone);
    if (!gone) blobs.push_back({.digest = *digest, .size = size});
  }
  return blobs;
}

}  // namespace weightfs::store
