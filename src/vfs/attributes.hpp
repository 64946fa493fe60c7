// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "vfs/node_id.hpp"

#include <cstdint>
#include <string>

namespace weightfs::vfs {

enum class Kind { kDirectory, kFile, kLink };

/// What stat shows. Everything belongs to root and nobody may write.
struct Attributes {
  Kind kind = Kind::kFile;
  std::uint64_t inode = 0;     ///< st_ino: the same on every node and after every restart
  std::uint64_t size = 0;      ///< bytes; of a link, of what it says
  std::uint64_t resident = 0;  ///< bytes on the local disk, what st_blocks counts
  std::int64_t mtime = 0;      ///< seconds since 1970
  bool executable = false;
};

/// How long the kernel may use an answer without asking again.
enum class Lifetime {
  kNone,     ///< names can change at any time
  kShort,    ///< attributes of a file that is filling
  kForever,  ///< what cannot change, or is found out otherwise: a complete node that is gone at
             ///< OPEN (ESTALE), its attributes by the Invalidator
};

/// The answer to a lookup.
struct Entry {
  NodeId node{0};
  Attributes attributes;
  Lifetime name_lifetime = Lifetime::kNone;  ///< that the name leads to this node
  Lifetime attributes_lifetime = Lifetime::kNone;
};

}  // namespace weightfs::vfs
