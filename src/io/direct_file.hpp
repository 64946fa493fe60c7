// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <cstddef>
#include <cstdint>

namespace weightfs::io {

/// A regular file open for reading, past the page cache (O_DIRECT) where its filesystem takes that:
/// a source that is read once must not push the models that are in use out of memory.
///
/// Owns the descriptor, whose open file must be nobody else's: O_DIRECT is a flag of it. Move-only;
/// confined to one thread at a time.
class DirectFile {
 public:
  explicit DirectFile(Fd fd);

  [[nodiscard]] const Fd& fd() const noexcept { return fd_; }
  [[nodiscard]] bool direct() const noexcept { return direct_; }
  /// What offsets and lengths must be multiples of while direct() (statx(2), STATX_DIOALIGN; 4096
  /// where the kernel does not say); 1 otherwise.
  [[nodiscard]] std::size_t alignment() const noexcept { return direct_ ? alignment_ : 1; }
  /// For filesystems that take the flag at open and refuse the read with EINVAL.
  void fall_back_to_buffered() noexcept;
  /// Drops what a buffered read left in the page cache; nothing happens while direct().
  void forget(std::uint64_t offset, std::uint64_t size) const noexcept;

 private:
  Fd fd_;
  bool direct_ = false;
  std::size_t alignment_ = 1;
};

}  // namespace weightfs::io
