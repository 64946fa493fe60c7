// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fuse/open_modes.hpp"
#include "keeper/keeper_client.hpp"

namespace weightfs::fuse {

/// Registers backing files through the keeper, which has the privilege. Thread-safe; the client
/// must outlive it.
class KeeperBackings final : public BackingRegistry {
 public:
  explicit KeeperBackings(keeper::KeeperClient& keeper) : keeper_(keeper) {}
  std::int32_t open_backing(const Fd& file) override { return keeper_.open_backing(file); }
  void close_backing(std::int32_t backing_id) override { keeper_.close_backing(backing_id); }

 private:
  keeper::KeeperClient& keeper_;
};

}  // namespace weightfs::fuse
