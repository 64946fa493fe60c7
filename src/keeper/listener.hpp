// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/log.hpp"

#include <sys/types.h>
#include <filesystem>
#include <optional>

namespace weightfs::keeper {

/// The unix socket where daemons that somebody else started connect: mode 0600, owned by the
/// daemon's user, and the kernel's word (SO_PEERCRED) is asked for besides. Owns the socket and its
/// file. Confined to one thread.
class Listener {
 public:
  /// The socket file of a keeper that is gone is replaced. Error: kBusy if somebody listens there
  /// or it is another kind of file; kInvalid path too long; kNotFound no directory.
  Listener(std::filesystem::path path, uid_t uid, gid_t gid, Log log);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  /// Becomes readable when somebody connects.
  [[nodiscard]] int descriptor() const noexcept { return socket_.value(); }
  /// A socket that does not block; nothing if nobody is there, or somebody who may not be.
  [[nodiscard]] std::optional<Fd> accept() const;

 private:
  std::filesystem::path path_;
  uid_t uid_;
  Log log_;
  Fd socket_;
};

}  // namespace weightfs::keeper
