// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/file/file_source.hpp"

#include "base/error.hpp"
#include "io/stale_file_error.hpp"
#include "snapshot/byte_text.hpp"
#include "source/error_context.hpp"
#include "source/file/file_error.hpp"
#include "source/file/file_version.hpp"
#include "source/file/tree_listing.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <utility>
#include <vector>

namespace weightfs::source {

namespace {

/// Parallel parts of one file keep a disk or a server busy together, so each needs only a few reads
/// in flight: 64 of them hold 256 MiB of buffers, and as much again may be kept warm.
constexpr io::DirectReaderOptions kReader{.queue_depth = 4, .chunk = 1 << 20};
constexpr int kMaxReopens = 3;

/// For reading; without waiting where the path leads to a FIFO.
Fd open_for_reading(const std::string& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw_file_error(errno, snapshot::printable(path));
  // With the flag, io_uring would answer EAGAIN instead of waiting for the disk.
  ::fcntl(fd, F_SETFL, 0);
  return Fd(fd);
}

/// What a version is remembered by.
std::string object_of(const snapshot::File& file) {
  return (file.sha256 ? file.sha256->hex() : "") + file.path;
}

}  // namespace

FileSource::FileSource(const snapshot::Reference& reference)
    : reference_(reference.text()), root_(reference.locator()), readers_(kReader) {
}

snapshot::Snapshot FileSource::resolve(std::stop_token stop) {
  const Fd fd = open_for_reading(root_, 0);
  const struct stat status = status_of(fd, root_);
  std::vector<snapshot::File> files;
  if (S_ISDIR(status.st_mode)) {
    files = list_tree(fd, root_, stop);
  } else if (S_ISREG(status.st_mode)) {
    files.push_back(
        describe_file(root_.substr(root_.rfind('/') + 1), status, inode_number_at(root_)));
  } else {
    throw Error(Errc::kInvalid,
                snapshot::printable(root_) + " is neither a directory nor a regular file");
  }
  return {reference_, "", std::move(files)};
}

std::string FileSource::path_of(const snapshot::File& file) const {
  // The root is a directory, or the file itself, whose name the snapshot then has.
  struct stat status{};
  const bool is_file = ::stat(root_.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
                       root_.ends_with("/" + file.path);
  return is_file ? root_ : (root_ == "/" ? "" : root_) + "/" + file.path;
}

FileSource::Opened FileSource::open(const snapshot::File& file) {
  const std::string path = path_of(file);
  Fd fd = open_for_reading(path, 0);
  const struct stat status = status_of(fd, snapshot::printable(path));
  std::string version = version_of(status, InodeNumber::kStable);
  if (!S_ISREG(status.st_mode)) throw Error(Errc::kChanged, "it is no regular file any more");
  if (static_cast<std::uint64_t>(status.st_size) != file.size) {
    throw Error(Errc::kChanged, "it has " + std::to_string(status.st_size) + " bytes now and had " +
                                    std::to_string(file.size));
  }
  if (file.validator.empty()) {
    first_versions_.check(object_of(file), fd, status);
  } else if (!is_version(file.validator, status)) {
    throw Error(Errc::kChanged, "it is " + version + " now and was " + file.validator);
  }
  return {std::move(fd), std::move(version)};
}

void FileSource::begin_afresh(const snapshot::File& file) {
  first_versions_.forget(object_of(file));
}

void FileSource::read(const snapshot::File& file, ByteRange range, Sink& sink,
                      std::stop_token stop) {
  GuardedSink guarded(sink, range);
  try {
    read_reopening(file, guarded, stop);
  } catch (...) {
    if (guarded.failed()) throw;
    rethrow_with(snapshot::printable(file.path) + " bytes " + std::to_string(range.begin) + "-" +
                 std::to_string(range.end - 1) + " from " + describe());
  }
}

void FileSource::read_reopening(const snapshot::File& file, GuardedSink& sink,
                                const std::stop_token& stop) {
  Opened opened = open(file);
  const std::string version = opened.version;
  for (int reopens = 0;; ++reopens) {
    try {
      return read_from(std::move(opened), sink, stop);
    } catch (const io::StaleFileError& error) {
      if (reopens == kMaxReopens) throw TransientError(Errc::kUnavailable, error.what());
    } catch (const Error& error) {
      // A file server gets over an EIO more often than a disk does; whoever retries has a deadline.
      if (sink.failed() || error.code() != Errc::kIo) throw;
      throw TransientError(Errc::kIo, error.what());
    }
    opened = open(file);
    if (opened.version != version) {
      throw Error(Errc::kChanged, "it was replaced under way: " + opened.version);
    }
  }
}

void FileSource::read_from(Opened opened, GuardedSink& sink, const std::stop_token& stop) {
  io::DirectFile file(std::move(opened.fd));
  const auto reader = readers_.take();
  reader->read(
      file, sink.rest(),
      [&](std::uint64_t offset, std::span<const std::byte> data) {
        const std::string now = version_of(status_of(file.fd(), root_), InodeNumber::kStable);
        if (now != opened.version) {
          throw Error(Errc::kChanged, "it was written to under way: " + now);
        }
        sink.write(offset, data);
      },
      stop);
}

std::string FileSource::describe() const {
  return snapshot::is_utf8(root_) ? root_ : snapshot::printable(root_);
}

std::optional<Fd> FileSource::open_local(const snapshot::File& file) {
  try {
    return open(file).fd;
  } catch (...) {
    rethrow_with(snapshot::printable(file.path) + " from " + describe());
  }
}

}  // namespace weightfs::source
