// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/socket_file.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace weightfs::keeper {

void give_socket_file(const std::filesystem::path& path, uid_t uid, gid_t gid) {
  const Fd file(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat found{};
  if (!file || ::fstat(file.value(), &found) != 0) throw_errno(errno, "open " + path.string());
  if (!S_ISSOCK(found.st_mode) || found.st_nlink != 1) {
    throw Error(Errc::kInvalid, path.string() + " was replaced while it was being made");
  }
  if (::fchownat(file.value(), "", uid, gid, AT_EMPTY_PATH) != 0) {
    throw_errno(errno, "give " + path.string() + " away");
  }
}

}  // namespace weightfs::keeper
