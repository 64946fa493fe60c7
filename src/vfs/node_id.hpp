// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstdint>

namespace weightfs::vfs {

/// A node id of the FUSE protocol, computed instead of allocated: there is no inode table, FORGET
/// needs no answer, and a restarted daemon understands every id that the kernel still holds.
///
///   bits 63..40  tree: which directory of the mount (see TreeTable)
///   bits 39..14  index: 0 is the tree's root, else the entry's position in the tree, from 1
///   bits 13..1   incarnation: goes up when a file's pages may be poisoned; never reused
///   bit  0       complete: the file's passthrough twin. Directories, too, have it set.
///
/// FUSE_ROOT_ID, 1, is tree 0, index 0, complete.
class NodeId {
 public:
  static constexpr unsigned kTreeBits = 24;
  static constexpr unsigned kIndexBits = 26;
  static constexpr unsigned kIncarnationBits = 13;
  static constexpr std::uint32_t kMaxIndex = (1U << kIndexBits) - 1;
  static constexpr std::uint32_t kMaxIncarnation = (1U << kIncarnationBits) - 1;

  constexpr explicit NodeId(std::uint64_t value) noexcept : value_(value) {}
  constexpr NodeId(std::uint32_t tree, std::uint32_t index, std::uint32_t incarnation,
                   bool complete) noexcept
      : value_(std::uint64_t{tree} << 40 | std::uint64_t{index} << 14 |
               std::uint64_t{incarnation & ((1U << kIncarnationBits) - 1)} << 1 |
               (complete ? 1U : 0U)) {}

  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }
  [[nodiscard]] constexpr std::uint32_t tree() const noexcept {
    return static_cast<std::uint32_t>(value_ >> 40);
  }
  [[nodiscard]] constexpr std::uint32_t index() const noexcept {
    return static_cast<std::uint32_t>(value_ >> 14) & kMaxIndex;
  }
  [[nodiscard]] constexpr std::uint32_t incarnation() const noexcept {
    return static_cast<std::uint32_t>(value_ >> 1) & ((1U << kIncarnationBits) - 1);
  }
  [[nodiscard]] constexpr bool complete() const noexcept { return (value_ & 1) != 0; }

  bool operator==(const NodeId&) const = default;

 private:
  std::uint64_t value_;
};

inline constexpr NodeId kRootNode{1};

}  // namespace weightfs::vfs
