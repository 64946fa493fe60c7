// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/process_lock.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/process_state.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <optional>
#include <sstream>
#include <string>

namespace weightfs {

namespace {

struct Holder {
  pid_t pid = 0;
  std::uint64_t started = 0;
};

Holder holder(const Fd& file) {
  std::array<char, 64> text{};
  const std::size_t length = read_at(file, 0, std::as_writable_bytes(std::span(text)));
  Holder holder;
  std::istringstream(std::string(text.data(), length)) >> holder.pid >> holder.started;
  return holder;
}

/// On a full disk the note stays empty; the lock holds all the same.
void sign(const Fd& file) {
  const std::optional<ProcessState> self = process_state(::getpid());
  const std::string note = fmt::format("{} {}\n", ::getpid(), self ? self->started : 0);
  if (::ftruncate(file.value(), 0) != 0 ||
      ::pwrite(file.value(), note.data(), note.size(), 0) < 0) {
    return;
  }
}

bool lock(const Fd& file, const std::filesystem::path& path) {
  if (::flock(file.value(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno != EWOULDBLOCK) throw_errno(errno, "lock " + path.string());
  return false;
}

Fd open_lock(const std::filesystem::path& path) {
  return open_file(path, O_RDWR | O_CREAT, 0600);
}

bool will_never_run(const Holder& who) {
  const std::optional<ProcessState> state = process_state(who.pid);
  return state && state->main_thread_ended && state->started == who.started;
}

[[noreturn]] void refuse(const Holder& who, const std::filesystem::path& directory,
                         std::string_view what) {
  throw Error(Errc::kBusy, fmt::format("{} {} is in use by process {}", what, directory.string(),
                                       who.pid > 0 ? std::to_string(who.pid) : "?"));
}

}  // namespace

ProcessLock::ProcessLock(const std::filesystem::path& path, std::string_view what) {
  // From the look at the file to the note in it nobody else gets at it.
  const Fd directory = open_file(path.parent_path(), O_RDONLY | O_DIRECTORY);
  if (::flock(directory.value(), LOCK_EX) != 0) throw_errno(errno, "lock " + path.string());
  fd_ = open_lock(path);
  bool locked = lock(fd_, path);
  const Holder who = locked ? Holder{} : holder(fd_);
  if (!locked && will_never_run(who)) {
    if (::unlink(path.c_str()) != 0) throw_errno(errno, "replace " + path.string());
    fd_ = open_lock(path);
    locked = taken_over_ = lock(fd_, path);
  }
  if (!locked) refuse(who, path.parent_path(), what);
  sign(fd_);
}

Fd keep_unlocked(const Fd& directory, const std::string& name, const std::filesystem::path& path,
                 std::string_view what) {
  // O_NONBLOCK: a FIFO of that name must not hold us up.
  Fd file(::openat(directory.value(), name.c_str(),
                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT || errno == ELOOP) return {};
    throw_errno(errno, "open " + (path / name).string());
  }
  // Shared, because NFS gives an exclusive one only to who may write.
  if (::flock(file.value(), LOCK_SH | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw_errno(errno, "lock " + (path / name).string());
    const Holder who = holder(file);
    if (!will_never_run(who)) refuse(who, path, what);
  }
  return file;
}

}  // namespace weightfs
