// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace weightfs::test {

/// `size` bytes in which every position differs from its neighbours, the same for each call.
inline std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (char& c : text) {
    state = state * 6364136223846793005 + 1442695040888963407;
    c = static_cast<char>(state >> 56);
  }
  return text;
}

/// A file in `directory` that goes with the object.
class ScratchFile {
 public:
  ScratchFile(const std::filesystem::path& directory, std::string_view content)
      : path_((directory / "weightfs-XXXXXX").string()) {
    Fd fd(::mkstemp(path_.data()));
    write_at(fd, 0, std::as_bytes(std::span(content)));
    ::fsync(fd.value());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() { ::unlink(path_.c_str()); }

  [[nodiscard]] std::filesystem::path path() const { return path_; }
  [[nodiscard]] Fd open() const { return open_file(path_, O_RDONLY); }

 private:
  std::string path_;
};

}  // namespace weightfs::test
