// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/release.hpp"

#include "base/error.hpp"
#include "net/percent_encoding.hpp"
#include "snapshot/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace weightfs::snapshot {

namespace {

constexpr std::string_view kExample =
    "release://base=https://host/models/llama/&adapters/x=file:///data/x";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Errc::kInvalid, fmt::format("{}; an example: {}", what, kExample));
}

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == '/';
}

void check_part_name(const std::string& name) {
  if (name.empty() || !std::ranges::all_of(name, is_plain)) {
    refuse(
        fmt::format("'{}' is no name for a part (letters, digits, '.', '_', '-' and '/')", name));
  }
  check_path(name);
}

/// So that the text ends at '&' and has no blanks; the rest stays readable.
std::string escaped(std::string_view source) {
  std::string text;
  for (const char c : source) {
    const bool plain = c != '%' && c != '&' && static_cast<unsigned char>(c) > ' ' && c != '\x7f';
    text += plain ? std::string(1, c) : net::percent_encode(std::string_view(&c, 1));
  }
  return text;
}

ReleasePart parse_part(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) refuse(fmt::format("'{}' is not NAME=SOURCE", text));
  std::string_view name = text.substr(0, equals);
  const bool overlay = name.ends_with('!');
  if (overlay) name.remove_suffix(1);
  const std::optional<std::string> source = net::percent_decode(text.substr(equals + 1));
  if (!source) refuse(fmt::format("the source of part '{}' has a '%' that means nothing", name));
  return {.name = std::string(name), .source = Reference::parse(*source), .overlay = overlay};
}

}  // namespace

std::string ReleasePart::prefix() const {
  return name.find('/') == std::string::npos ? "" : name + "/";
}

Release::Release(std::vector<ReleasePart> parts) : parts_(std::move(parts)) {
  if (parts_.empty()) refuse("a release has at least one part");
  std::set<std::string_view> names;
  for (const ReleasePart& part : parts_) {
    check_part_name(part.name);
    if (!names.insert(part.name).second)
      refuse(fmt::format("two parts have the name {}", part.name));
    if (part.source.scheme() == Scheme::kRelease) refuse("a part of a release is no release");
  }
}

Release Release::parse(std::string_view text) {
  if (!text.starts_with(kReleaseScheme)) refuse("a release begins with release://");
  text.remove_prefix(kReleaseScheme.size());
  std::vector<ReleasePart> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('&', begin), text.size());
    parts.push_back(parse_part(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return Release(std::move(parts));
}

std::string Release::text() const {
  std::string text;
  for (const ReleasePart& part : parts_) {
    text += fmt::format("{}{}{}={}", text.empty() ? "" : "&", part.name, part.overlay ? "!" : "",
                        escaped(part.source.text()));
  }
  return std::string(kReleaseScheme) + text;
}

std::string Release::shown() const {
  std::string text;
  for (const ReleasePart& part : parts_) {
    text += fmt::format("{}{}{}={}", text.empty() ? "" : "&", part.name, part.overlay ? "!" : "",
                        escaped(shown_source(part.source.text())));
  }
  return std::string(kReleaseScheme) + text;
}

}  // namespace weightfs::snapshot
