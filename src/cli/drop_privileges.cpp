// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/drop_privileges.hpp"

#include "base/error.hpp"

#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <cerrno>

namespace weightfs::cli {

void drop_privileges(const ProcessUser& user) {
  const auto require = [](int result, const char* what) {
    if (result != 0) throw_errno(errno, what);
  };
  require(::setgroups(0, nullptr), "give up the supplementary groups");
  require(::setresgid(user.gid, user.gid, user.gid), "change the group");
  require(::setresuid(user.uid, user.uid, user.uid), "change the user");
  require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs");
}

}  // namespace weightfs::cli
