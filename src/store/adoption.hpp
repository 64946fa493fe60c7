// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "digest/sha256.hpp"

#include <functional>
#include <span>

namespace weightfs::store {

/// A file of somebody else's that is to become a blob as it stands, by a hard link. Its owner can
/// then change the blob: that is found out by its identity at the next open, and by its midstates
/// after a boot, like any change of a blob, but not by who has it open.
///
/// So that nobody does by accident, it must belong to the user of this process, must not be open
/// for writing, and is made read-only (mode 0444), which its other names see, too.
///
/// `file` must outlive the call it is given to.
struct Adoption {
  const Fd& file;                       ///< open for reading
  std::span<const Midstate> midstates;  ///< as for PartialBlob::commit
  /// Called when nobody can write to it any more; throws if it is not the file that was hashed.
  std::function<void()> check;
};

/// Keeps others from opening a file for writing, until destruction. Error: kPermission it belongs
/// to somebody else; kBusy it is open for writing; kUnsupported its filesystem has no leases.
class WriteGuard {
 public:
  explicit WriteGuard(const Fd& file);
  WriteGuard(const WriteGuard&) = delete;
  WriteGuard& operator=(const WriteGuard&) = delete;
  ~WriteGuard();

 private:
  const Fd& file_;
};

}  // namespace weightfs::store
