// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/file.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace weightfs {

Fd open_file(const std::filesystem::path& path, int flags, unsigned mode) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) throw_errno(errno, "open " + path.string());
  return Fd(fd);
}

std::string read_file(const std::filesystem::path& path, std::uint64_t limit) {
  const Fd fd = open_file(path, O_RDONLY);
  std::string content;
  constexpr std::size_t kStep = 64 << 10;
  for (;;) {
    const std::size_t old = content.size();
    content.resize(old + kStep);
    const std::size_t got =
        read_at(fd, old, std::as_writable_bytes(std::span(content.data() + old, kStep)));
    content.resize(old + got);
    if (content.size() > limit) {
      throw Error(Errc::kInvalid,
                  path.string() + " is larger than " + std::to_string(limit) + " bytes");
    }
    if (got < kStep) return content;
  }
}

void write_file_durably(const std::filesystem::path& path, std::string_view content,
                        unsigned mode) {
  const std::filesystem::path temporary = path.string() + ".tmp";
  {
    const Fd fd = open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode);
    write_at(fd, 0, std::as_bytes(std::span(content)));
    if (::fdatasync(fd.value()) != 0) throw_errno(errno, "sync " + temporary.string());
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    throw_errno(errno, "rename " + temporary.string());
  }
  sync_directory(path.parent_path());
}

void sync_directory(const std::filesystem::path& directory) {
  const Fd fd = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (::fsync(fd.value()) != 0) throw_errno(errno, "sync " + directory.string());
}

std::size_t read_at(const Fd& fd, std::uint64_t offset, std::span<std::byte> buffer) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got = ::pread(fd.value(), buffer.data() + done, buffer.size() - done,
                                static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      throw_errno(errno, "read");
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void write_at(const Fd& fd, std::uint64_t offset, std::span<const std::byte> data) {
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t put = ::pwrite(fd.value(), data.data() + done, data.size() - done,
                                 static_cast<off_t>(offset + done));
    if (put < 0) {
      if (errno == EINTR) continue;
      throw_errno(errno, "write");
    }
    done += static_cast<std::size_t>(put);
  }
}

}  // namespace weightfs
