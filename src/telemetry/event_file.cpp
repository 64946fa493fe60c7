// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "telemetry/event_file.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "telemetry/event_line.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace weightfs::telemetry {

namespace {

/// Of the end of a file: enough for thousands of events, and read at every start of a daemon.
constexpr std::uint64_t kTail = 4ULL << 20;
/// Whoever may use the control socket is told the same there.
constexpr unsigned kMode = 0640;

std::uint64_t size_of(const Fd& fd, const std::filesystem::path& path) {
  struct stat status = {};
  if (::fstat(fd.value(), &status) != 0) throw_errno(errno, "stat " + path.string());
  return static_cast<std::uint64_t>(status.st_size);
}

/// The end of the file, at most kTail of it.
std::string tail_of(const Fd& fd, std::uint64_t size) {
  std::string text(std::min(size, kTail), '\0');
  const std::size_t read =
      read_at(fd, size - text.size(), std::as_writable_bytes(std::span(text.data(), text.size())));
  text.resize(read);
  return text;
}

/// Prepends the last events of the text to `events`, until there are `count`. False where the text
/// has more.
bool take_last(std::string_view text, std::size_t count, std::vector<Event>& events) {
  std::vector<Event> found;  // newest first
  while (!text.empty() && events.size() + found.size() < count) {
    text.remove_suffix(text.ends_with('\n') ? 1 : 0);
    const std::size_t end = text.rfind('\n');
    const std::size_t begin = end == std::string_view::npos ? 0 : end + 1;
    if (auto event = event_of(text.substr(begin))) found.push_back(*std::move(event));
    text = text.substr(0, begin);
  }
  events.insert(events.begin(), std::move_iterator(found.rbegin()),
                std::move_iterator(found.rend()));
  return text.empty();
}

}  // namespace

EventFile::EventFile(std::filesystem::path path, std::uint64_t most_bytes)
    : path_(std::move(path)), before_(path_.string() + ".1"), most_bytes_(most_bytes) {
}

EventFile::Tail EventFile::read_last(std::size_t count) {
  Tail tail;
  for (const auto& path : {path_, before_}) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd && errno == ENOENT) continue;
    if (!fd) throw_errno(errno, "open " + path.string());
    const std::uint64_t size = size_of(fd, path);
    const bool all = take_last(tail_of(fd, size), count, tail.events) && size <= kTail;
    if (all) continue;
    tail.whole = false;
    break;
  }
  return tail;
}

void EventFile::append(std::string_view lines) {
  if (!fd_ || !is_ours()) open();
  if (size_ > 0 && size_ + lines.size() > most_bytes_) rotate();
  try {
    write_at(fd_, size_, std::as_bytes(std::span(lines.data(), lines.size())));
  } catch (const Error&) {
    // What went through of it is cut off at once where that can be done, else by the next open().
    if (::ftruncate(fd_.value(), static_cast<off_t>(size_)) != 0) fd_ = Fd();
    throw;
  }
  size_ += lines.size();
}

void EventFile::open() {
  fd_ = Fd();
  // Not O_APPEND: what is written after a failure takes the place of what that left.
  Fd fd = open_file(path_, O_RDWR | O_CREAT | O_NOFOLLOW, kMode);
  const std::uint64_t size = size_of(fd, path_);
  const std::string tail = tail_of(fd, size);
  const std::size_t end = tail.rfind('\n');
  const std::uint64_t torn = tail.size() - (end == std::string::npos ? 0 : end + 1);
  if (torn > 0 && ::ftruncate(fd.value(), static_cast<off_t>(size - torn)) != 0) {
    throw_errno(errno, "truncate " + path_.string());
  }
  size_ = size - torn;
  fd_ = std::move(fd);
}

bool EventFile::is_ours() const {
  struct stat named = {};
  struct stat opened = {};
  return ::stat(path_.c_str(), &named) == 0 && ::fstat(fd_.value(), &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino &&
         static_cast<std::uint64_t>(opened.st_size) == size_;
}

void EventFile::rotate() {
  if (std::rename(path_.c_str(), before_.c_str()) != 0) {
    throw_errno(errno, "rename " + path_.string());
  }
  open();
}

}  // namespace weightfs::telemetry
