// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/file.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"

#include <fmt/format.h>

namespace weightfs::snapshot {

namespace {

/// What is wrong with one component, or null.
const char* fault(std::string_view component) noexcept {
  if (component.empty()) return "has an empty component";
  if (component == ".") return "has a \".\" component";
  if (component == "..") return "has a \"..\" component";
  if (component.size() > kMaxNameBytes) return "has a component of more than 255 bytes";
  return nullptr;
}

const char* path_fault(std::string_view path) noexcept {
  if (path.empty()) return "is empty";
  if (path.size() > kMaxPathBytes) return "has more than 4096 bytes";
  if (path.front() == '/') return "is absolute";
  if (path.find('\0') != std::string_view::npos) return "has a NUL byte";
  std::size_t depth = 0;
  for (std::size_t begin = 0;;) {
    if (++depth > kMaxDepth) return "has more than 128 components";
    const std::size_t end = path.find('/', begin);
    if (const char* what = fault(path.substr(begin, end - begin))) return what;
    if (end == std::string_view::npos) return nullptr;
    begin = end + 1;
  }
}

}  // namespace

void check_path(std::string_view path) {
  if (const char* what = path_fault(path)) {
    throw Error(Errc::kInvalid, fmt::format("the path {} {}", printable(path), what));
  }
}

}  // namespace weightfs::snapshot
