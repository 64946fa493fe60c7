// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/consumer.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <unistd.h>
#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string_view>

namespace weightfs::vfs {

namespace {

/// Whether the component is a pod's, below one of Kubernetes': "pod<uid>", or as systemd has it,
/// "kubepods-burstable-pod<uid>.slice".
bool is_pod(std::string_view component) {
  return component.starts_with("pod") ||
         (component.starts_with("kubepods") && component.find("-pod") != std::string_view::npos);
}

/// Without what stands below a pod: its containers come and go with every restart.
std::string without_container(const std::string& path) {
  bool below_kubepods = false;
  for (std::size_t begin = 1; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = std::string_view(path).substr(begin, end - begin);
    if ((below_kubepods || component.starts_with("kubepods")) && is_pod(component)) {
      return path.substr(0, end);
    }
    below_kubepods = below_kubepods || component.starts_with("kubepods");
    begin = end + 1;
  }
  return path;
}

}  // namespace

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
    if (line.starts_with("0::")) return without_container(path);
    if (named.empty()) named = path;
  }
  return without_container(named);
}

std::string consumer_of(pid_t pid, const std::string& deployment) {
  if (pid <= 0) return deployment;
  try {
    constexpr std::uint64_t kLimit = 64 << 10;
    std::string group =
        consumer_from_cgroup(read_file("/proc/" + std::to_string(pid) + "/cgroup", kLimit));
    if (!group.empty()) return group;
  } catch (const Error&) {
    return deployment;  // gone, or hidden from us
  }
  const pid_t session = ::getsid(pid);
  return session > 0 ? "session:" + std::to_string(session) : deployment;
}

}  // namespace weightfs::vfs
