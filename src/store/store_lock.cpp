// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/store_lock.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <string>

namespace weightfs::store {

namespace {

std::string holder(const Fd& fd) {
  std::array<char, 32> text{};
  const std::size_t length = read_at(fd, 0, std::as_writable_bytes(std::span(text)));
  const std::string_view pid(text.data(), length);
  return std::string(pid.substr(0, pid.find_first_not_of("0123456789")));
}

}  // namespace

StoreLock::StoreLock(const std::filesystem::path& path)
    : fd_(open_file(path, O_RDWR | O_CREAT, 0600)) {
  if (::flock(fd_.value(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw_errno(errno, "lock " + path.string());
    const std::string pid = holder(fd_);
    throw Error(Errc::kBusy, fmt::format("the store {} is in use by process {}",
                                         path.parent_path().string(), pid.empty() ? "?" : pid));
  }
  // On a full disk the note stays empty; the lock holds all the same.
  const std::string note = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd_.value(), 0) != 0 || ::pwrite(fd_.value(), note.data(), note.size(), 0) < 0) {
    return;
  }
}

}  // namespace weightfs::store
