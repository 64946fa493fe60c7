// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fetch/fill.hpp"
#include "store/blob.hpp"
#include "vfs/node_id.hpp"
#include "vfs/places.hpp"
#include "vfs/unchecked_blob.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

namespace weightfs::vfs {

/// A file that is generated.
using TextPtr = std::shared_ptr<const std::string>;

/// What serves the reads of a node: the verified blob, the fill that is on its way to become one,
/// a blob that is checked as it is read, or what was generated.
using Backing = std::variant<store::Blob, fetch::FillPtr, UncheckedBlobPtr, TextPtr>;

/// The nodes that the kernel has open, what each is, and what serves it. Keyed by node, not by file
/// handle, so that a daemon that took over a session can go on with handles that it never gave out.
/// Whoever has a file open keeps it, whatever leaves the catalog or the store meanwhile.
///
/// Thread-safe. What `make` functions do (disk, locks of lower layers) happens outside its lock.
class OpenFiles {
 public:
  /// Throws where the node must not get a new backing; then nothing changes for who has it open.
  using Make = std::function<Backing()>;

  /// Counts one more open; the first one, and one after a fill that failed, makes the backing.
  Backing acquire(NodeId node, const PlacePtr& place, const Make& make);
  /// For a read. Makes the backing, without counting, where an earlier daemon answered the open, or
  /// where it is a fill that ended in an error that may pass.
  Backing find(NodeId node, const PlacePtr& place, const Make& make);
  /// What an open node is; nullptr where this daemon has not met it.
  [[nodiscard]] PlacePtr place(NodeId node) const;
  /// Takes over an open count from an earlier daemon of this session.
  void adopt(NodeId node, const PlacePtr& place, std::uint32_t opens);
  /// Returns place().
  PlacePtr release(NodeId node);
  [[nodiscard]] std::uint64_t count() const;
  /// Whether the node is open and served by a fill that is neither complete nor has failed.
  [[nodiscard]] bool filling(NodeId node) const;

 private:
  struct OpenFile {
    std::uint32_t opens = 0;
    // Set when they are first needed.
    PlacePtr place;
    std::optional<Backing> backing;
  };
  using Files = std::unordered_map<std::uint64_t, OpenFile>;

  enum class Use { kOpen, kRead };
  Backing ensure(NodeId node, const PlacePtr& place, Use use, const Make& make);

  Synchronized<Files> files_;
};

}  // namespace weightfs::vfs
