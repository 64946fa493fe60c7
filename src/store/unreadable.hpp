// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cerrno>

namespace weightfs::store {

/// Whether an errno says that this one file cannot be read any more: a bad sector (EIO, ENODATA), a
/// failed checksum (EBADMSG, EILSEQ), damaged metadata (EUCLEAN), a mode or owner that is not ours
/// (EACCES). Everything in a store can be had again, so such a file counts as missing. Others
/// (EMFILE, EROFS) say nothing of the file.
[[nodiscard]] constexpr bool is_unreadable(int errno_value) noexcept {
  return errno_value == EIO || errno_value == ENODATA || errno_value == EBADMSG ||
         errno_value == EILSEQ || errno_value == EUCLEAN || errno_value == EACCES;
}

}  // namespace weightfs::store
