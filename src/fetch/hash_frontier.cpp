// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/hash_frontier.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/partial_blob.hpp"

#include <algorithm>

namespace weightfs::fetch {

void HashFrontier::advance(const Fd& data, std::uint64_t end, std::span<std::byte> buffer) {
  end = std::min(end, size_);
  while (position() < end) {
    const std::uint64_t to_part = store::kPartSize - position() % store::kPartSize;
    const auto step =
        buffer.first(std::min({buffer.size(), static_cast<std::size_t>(end - position()),
                               static_cast<std::size_t>(to_part)}));
    if (read_at(data, position(), step) != step.size()) {
      throw Error(Errc::kIo, "the local copy is shorter than what was written to it");
    }
    hash_.update(step);
    if (position() % store::kPartSize == 0 && position() < size_) {
      midstates_.push_back(hash_.midstate());
    }
  }
}

}  // namespace weightfs::fetch
