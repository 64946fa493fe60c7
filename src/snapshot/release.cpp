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
  if (name.empty() || name.ends_with('-') || !std::ranges::all_of(name, is_plain)) {
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

/// What stands between the name of a part and "=".
constexpr std::string_view kOperators = "!|+-";

/// "NAME=SOURCE" and its like, added to the parts before it.
void take(std::string_view text, std::vector<ReleasePart>& parts) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) refuse(fmt::format("'{}' is not NAME=SOURCE", text));
  std::string name(text.substr(0, equals));
  char kind = '=';
  if (!name.empty() && kOperators.find(name.back()) != std::string_view::npos) {
    kind = name.back();
    name.pop_back();
  }
  const std::optional<std::string> value = net::percent_decode(text.substr(equals + 1));
  if (!value) refuse(fmt::format("what stands for part '{}' has a '%' that means nothing", name));
  if (kind == '=' || kind == '!') {
    parts.push_back({.name = name,
                     .sources = {Reference::parse(*value)},
                     .overlay = kind == '!',
                     .selection = {}});
    return;
  }
  const auto part = std::ranges::find(parts, name, &ReleasePart::name);
  if (part == parts.end()) refuse(fmt::format("'{}' is about a part that is not there", text));
  if (kind == '|') {
    part->sources.push_back(Reference::parse(*value));
  } else {
    (kind == '+' ? part->selection.allow : part->selection.ignore).push_back(*value);
  }
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
    if (part.sources.empty()) refuse(fmt::format("part {} has no source", part.name));
    for (const Reference& source : part.sources) {
      if (source.scheme() == Scheme::kRelease) refuse("a part of a release is no release");
    }
  }
}

Release Release::parse(std::string_view text) {
  if (!text.starts_with(kReleaseScheme)) refuse("a release begins with release://");
  text.remove_prefix(kReleaseScheme.size());
  std::vector<ReleasePart> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('&', begin), text.size());
    take(text.substr(begin, end - begin), parts);
    begin = end + 1;
  }
  return Release(std::move(parts));
}

std::string Release::text() const {
  return written([](const Reference& source) { return source.text(); });
}

std::string Release::shown() const {
  return written([](const Reference& source) { return shown_source(source.text()); });
}

std::string Release::written(std::string (*source)(const Reference&)) const {
  std::string text;
  const auto add = [&](const ReleasePart& part, std::string_view kind, std::string_view value) {
    text += fmt::format("{}{}{}={}", text.empty() ? "" : "&", part.name, kind, escaped(value));
  };
  for (const ReleasePart& part : parts_) {
    for (std::size_t i = 0; i < part.sources.size(); ++i) {
      add(part, i > 0 ? "|" : part.overlay ? "!" : "", source(part.sources[i]));
    }
    for (const std::string& pattern : part.selection.allow) add(part, "+", pattern);
    for (const std::string& pattern : part.selection.ignore) add(part, "-", pattern);
  }
  return std::string(kReleaseScheme) + text;
}

const ReleasePart* Release::whole() const noexcept {
  const bool alone = parts_.size() == 1 && parts_.front().prefix().empty();
  return alone ? &parts_.front() : nullptr;
}

}  // namespace weightfs::snapshot
