// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "keeper/mount_table.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <filesystem>

namespace weightfs::keeper {

namespace {

constexpr std::uint64_t kTableLimit = 64 << 20;

/// Cuts the text up to the next `separator` off its front.
std::string_view cut(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view front = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return front;
}

int to_number(std::string_view text, int base = 10) {
  int value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

/// The kernel writes blank, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    if (text.front() == '\\' && text.size() >= 4) {
      plain += static_cast<char>(to_number(text.substr(1, 3), 8));
      text.remove_prefix(4);
    } else {
      plain += text.front();
      text.remove_prefix(1);
    }
  }
  return plain;
}

int mount_id_of(int descriptor) {
  std::string text = read_file(fmt::format("/proc/self/fdinfo/{}", descriptor), kTableLimit);
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = cut(rest, '\n');
    if (cut(line, '\t') == "mnt_id:") return to_number(line);
  }
  return -1;
}

}  // namespace

std::vector<MountEntry> parse_mount_table(std::string_view text) {
  std::vector<MountEntry> entries;
  while (!text.empty()) {
    // 36 35 98:0 /root /mount/point rw,noatime shared:1 - ext3 /dev/root rw,errors=continue
    std::string_view line = cut(text, '\n');
    MountEntry entry;
    entry.id = to_number(cut(line, ' '));
    cut(line, ' ');
    entry.device = cut(line, ' ');
    cut(line, ' ');
    entry.mountpoint = unescape(cut(line, ' '));
    cut(line, ' ');
    for (std::string_view tag = cut(line, ' '); tag != "-" && !tag.empty(); tag = cut(line, ' ')) {
      entry.shared |= tag.starts_with("shared:");
    }
    entry.filesystem = cut(line, ' ');
    if (entry.id >= 0 && !entry.filesystem.empty()) entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<MountEntry> mount_table() {
  return parse_mount_table(read_file("/proc/self/mountinfo", kTableLimit));
}

std::optional<Place> place_of(int descriptor) {
  const int id = mount_id_of(descriptor);
  for (MountEntry& entry : mount_table()) {
    if (entry.id == id) {
      std::error_code error;
      const auto path =
          std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", descriptor), error);
      if (error) throw_errno(error.value(), "find the path of a descriptor");
      return Place{.mount = std::move(entry), .path = path.string()};
    }
  }
  return std::nullopt;
}

}  // namespace weightfs::keeper
