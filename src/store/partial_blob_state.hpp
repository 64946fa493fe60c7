// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "store/block_map.hpp"
#include "store/partial_blob.hpp"
#include "store/partial_table.hpp"
#include "store/volume_state.hpp"

#include <filesystem>
#include <memory>

namespace weightfs::store {

/// The files of a partial blob, open, and the claim on its key. Constructing it resumes or creates.
class PartialBlob::State {
 public:
  State(Volume::State& volume, const PartialKey& key, std::uint64_t size);

  Volume::State& volume;
  const PartialKey key;
  const std::uint64_t size;
  const std::filesystem::path folder;
  PartialTable::Claim claim;
  Fd data;
  std::unique_ptr<BlockMap> map;
  /// The first checkpoint makes the names durable, too; until then a power cut takes the whole.
  Synchronized<bool> names_synced{false};

  /// Removes the folder with whatever is left in it. Best effort: the next open finishes it.
  void remove_files() noexcept;

 private:
  bool resume();
  void create();
  void preallocate() const;
};

}  // namespace weightfs::store
