// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/secret_file.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <span>
#include <utility>

namespace weightfs::source {

namespace {

constexpr std::int64_t kLongest = 1 << 20;

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

FileMark mark_of(const struct stat& status) {
  return {.mtime_ns = nanoseconds(status.st_mtim),
          .ctime_ns = nanoseconds(status.st_ctim),
          .inode = status.st_ino,
          .size = status.st_size};
}

}  // namespace

FileMark FileMark::of(const std::filesystem::path& file) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) == 0) return mark_of(status);
  if (errno == ENOENT || errno == ENOTDIR) return {};
  throw_errno(errno, file.string());
}

std::string FileMark::text() const {
  return fmt::format("{}.{}.{}.{}", mtime_ns, ctime_ns, inode, size);
}

SecretFile::SecretFile(std::filesystem::path path) : path_(std::move(path)) {
}

SecretFile::ContentPtr SecretFile::content() {
  const FileMark now = FileMark::of(path_);
  if (!now.exists()) return nullptr;
  const auto known =
      seen_.with([&](const Seen& seen) { return seen.mark == now ? seen.content : ContentPtr(); });
  if (known) return known;

  const Fd file = open_file(path_, O_RDONLY | O_NONBLOCK);
  struct stat status = {};
  if (::fstat(file.value(), &status) != 0) throw_errno(errno, path_.string());
  if (!S_ISREG(status.st_mode)) throw Error(Errc::kInvalid, path_.string() + " is not a file");
  if ((status.st_mode & S_IWOTH) != 0) {
    throw Error(Errc::kPermission,
                path_.string() + " is not used, because everybody may write it: chmod o-w");
  }
  if (status.st_size > kLongest) {
    throw Error(Errc::kInvalid, path_.string() + " is too long to hold secrets");
  }
  Content content{.text = std::string(static_cast<std::size_t>(status.st_size), '\0'),
                  .others_may_read = (status.st_mode & S_IROTH) != 0};
  content.text.resize(read_at(file, 0, std::as_writable_bytes(std::span(content.text))));
  auto read = std::make_shared<const Content>(std::move(content));
  seen_.with([&](Seen& seen) { seen = {mark_of(status), read}; });
  return read;
}

std::string trimmed(std::string text) {
  constexpr const char* kBlank = " \t\r\n";
  text.erase(0, text.find_first_not_of(kBlank));
  text.erase(text.find_last_not_of(kBlank) + 1);
  return text;
}

}  // namespace weightfs::source
