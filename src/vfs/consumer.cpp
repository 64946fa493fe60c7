// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/consumer.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <unistd.h>
#include <sstream>
#include <string_view>

namespace weightfs::vfs {

std::string consumer_from_cgroup(const std::string& text) {
  std::string named;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // "hierarchy:controllers:path" (cgroups(7))
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    if (path == "/" || path.empty()) continue;
    if (line.starts_with("0::")) return path;
    if (named.empty()) named = path;
  }
  return named;
}

std::string consumer_of(pid_t pid) {
  if (pid <= 0) return "unknown";
  try {
    constexpr std::uint64_t kLimit = 64 << 10;
    std::string group =
        consumer_from_cgroup(read_file("/proc/" + std::to_string(pid) + "/cgroup", kLimit));
    if (!group.empty()) return group;
  } catch (const Error&) {
    return "unknown";  // gone, or hidden from us
  }
  const pid_t session = ::getsid(pid);
  return session > 0 ? "session:" + std::to_string(session) : "unknown";
}

}  // namespace weightfs::vfs
