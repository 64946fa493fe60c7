// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"

#include <cerrno>
#include <system_error>

namespace weightfs {

const char* name(Errc code) noexcept {
  switch (code) {
    case Errc::kInvalid:
      return "invalid";
    case Errc::kNotFound:
      return "not_found";
    case Errc::kPermission:
      return "permission";
    case Errc::kTimedOut:
      return "timed_out";
    case Errc::kUnavailable:
      return "unavailable";
    case Errc::kChanged:
      return "changed";
    case Errc::kCorrupt:
      return "corrupt";
    case Errc::kNoSpace:
      return "no_space";
    case Errc::kIo:
      return "io";
    case Errc::kBusy:
      return "busy";
    case Errc::kNotReady:
      return "not_ready";
    case Errc::kCancelled:
      return "cancelled";
    case Errc::kUnsupported:
      return "unsupported";
    case Errc::kInternal:
      return "internal";
  }
  return "internal";
}

namespace {

Errc from_errno(int value) noexcept {
  switch (value) {
    case ENOSPC:
    case EDQUOT:
      return Errc::kNoSpace;
    case ENOENT:
      return Errc::kNotFound;
    case EACCES:
    case EPERM:
      return Errc::kPermission;
    case EBUSY:
      return Errc::kBusy;
    case ECANCELED:
      return Errc::kCancelled;
    default:
      return Errc::kIo;
  }
}

}  // namespace

void throw_errno(int errno_value, const std::string& what) {
  throw Error(from_errno(errno_value), what + ": " + std::generic_category().message(errno_value));
}

}  // namespace weightfs
