// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/file_error.hpp"

#include "base/error.hpp"

#include <cerrno>
#include <system_error>

namespace weightfs::source {

void throw_file_error(int errno_value, const std::string& what) {
  const std::string text = what + ": " + std::generic_category().message(errno_value);
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      throw Error(Errc::kNotFound, text);
    case EACCES:
    case EPERM:
      throw Error(Errc::kPermission, text);
    case ETIMEDOUT:
      throw TransientError(Errc::kTimedOut, text);
    case ESTALE:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ECONNREFUSED:
    case ECONNRESET:
    case ENOTCONN:
    case EMFILE:
    case ENFILE:
      throw TransientError(Errc::kUnavailable, text);
    default:
      throw TransientError(Errc::kIo, text);
  }
}

}  // namespace weightfs::source
