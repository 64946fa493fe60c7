// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fuse/errno.hpp"

#include <cerrno>

namespace weightfs::fuse {

int to_errno(Errc code, Call call) noexcept {
  switch (code) {
    // A path walk that gets ESTALE is repeated by the kernel and finds the current node; a reader
    // cannot do that. A file that the snapshot has and the source no longer has is a change, too.
    case Errc::kChanged:
    case Errc::kNotFound:
      return call == Call::kPath ? ESTALE : EIO;
    case Errc::kPermission:
      return EACCES;
    case Errc::kTimedOut:
    case Errc::kUnavailable:
      return ETIMEDOUT;
    case Errc::kBusy:
      return EBUSY;
    case Errc::kNotReady:
      return EAGAIN;
    case Errc::kCancelled:
      return EINTR;
    // A server that speaks nonsense (kInvalid, kUnsupported) is no fault of the caller's arguments,
    // and a full local disk is ours to work around: a reader must never see ENOSPC.
    case Errc::kInvalid:
    case Errc::kUnsupported:
    case Errc::kNoSpace:
    case Errc::kCorrupt:
    case Errc::kIo:
    case Errc::kInternal:
      return EIO;
  }
  return EIO;
}

}  // namespace weightfs::fuse
