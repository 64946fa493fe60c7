// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/hub_reference.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/pinned_reference.hpp"
#include "snapshot/release.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace weightfs::snapshot {

namespace {

constexpr std::size_t kMaxRepositoryBytes = 96 * 2 + 1;  // the Hub's own bound is 96 for each part
constexpr std::size_t kMaxRevisionBytes = 255;
constexpr std::string_view kEndpoint = "endpoint=";

constexpr std::array<std::pair<std::string_view, HubKind>, 3> kKinds{{
    {"models", HubKind::kModel},
    {"datasets", HubKind::kDataset},
    {"spaces", HubKind::kSpace},
}};

std::string_view word(HubKind kind) {
  return std::ranges::find(kKinds, kind, &std::pair<std::string_view, HubKind>::second)->first;
}

[[noreturn]] void refuse(std::string_view what, std::string_view text) {
  throw Error(Errc::kInvalid,
              fmt::format("{} {}; an example: hf://org/name@main", printable(text), what));
}

bool is_name(std::string_view name) noexcept {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  const auto is_edge = [](char c) { return c == '.' || c == '-'; };
  return !name.empty() && std::ranges::all_of(name, allowed) && !is_edge(name.front()) &&
         !is_edge(name.back()) && name.find("--") == std::string_view::npos &&
         name.find("..") == std::string_view::npos;
}

/// As git-check-ref-format(1) has it, as far as it matters here: it becomes part of URLs and paths.
bool is_revision(std::string_view text) noexcept {
  if (text.empty() || text.size() > kMaxRevisionBytes) return false;
  const auto forbidden = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' ||
           std::string_view("\x7f~^:?*[\\@").find(c) != std::string_view::npos;
  };
  if (std::ranges::any_of(text, forbidden)) return false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (part.empty() || part.starts_with('.') || part.find("..") != std::string_view::npos)
      return false;
    begin = end + 1;
  }
  return true;
}

std::string endpoint_of(std::string_view query, std::string_view whole) {
  if (!query.starts_with(kEndpoint)) refuse("has a query that is not ?endpoint=URL", whole);
  return hub_endpoint(query.substr(kEndpoint.size()));
}

}  // namespace

HubReference HubReference::parse(const Reference& reference) {
  return parse_locator(reference.locator());
}

HubReference HubReference::parse_locator(std::string_view locator) {
  HubReference hub;
  std::string_view rest = locator;
  if (const std::size_t query = rest.find('?'); query != std::string_view::npos) {
    hub.endpoint = endpoint_of(rest.substr(query + 1), locator);
    rest = rest.substr(0, query);
  }
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    hub.revision = rest.substr(at + 1);
    if (!is_revision(hub.revision)) refuse("has no valid revision behind the @", locator);
    rest = rest.substr(0, at);
  }
  for (const auto& [name, kind] : kKinds) {
    if (!rest.starts_with(name) || !rest.substr(name.size()).starts_with('/')) continue;
    hub.kind = kind;
    rest.remove_prefix(name.size() + 1);
    break;
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t slash = rest.find('/');
  const bool valid = slash == std::string_view::npos
                         ? is_name(rest)
                         : is_name(rest.substr(0, slash)) && is_name(rest.substr(slash + 1));
  if (!valid || rest.size() > kMaxRepositoryBytes) refuse("names no repository", locator);
  hub.repository = rest;
  return hub;
}

std::string HubReference::text() const {
  return fmt::format("hf://{}{}{}{}{}{}", kind == HubKind::kModel ? "" : word(kind),
                     kind == HubKind::kModel ? "" : "/", repository,
                     revision == "main" ? "" : "@" + revision,
                     endpoint.empty() ? "" : "?endpoint=", endpoint);
}

std::string HubReference::cache_folder() const {
  std::string folder(word(kind));
  folder += "--";
  for (const char c : repository) folder += c == '/' ? "--" : std::string(1, c);
  return folder;
}

bool HubReference::is_commit() const noexcept {
  return is_git_id(revision);
}

std::string hub_endpoint(std::string_view url) {
  const Reference reference = Reference::parse(url);
  const bool is_http = reference.scheme() == Scheme::kHttp || reference.scheme() == Scheme::kHttps;
  std::string text = reference.text();
  if (!is_http || text.find('?') != std::string::npos) {
    throw Error(Errc::kInvalid,
                fmt::format("{} is no http(s) URL of a Hub; an example: https://huggingface.co",
                            shown_source(url)));
  }
  while (text.ends_with('/')) text.pop_back();
  return text;
}

std::optional<HubReference> hub_reference_of(std::string_view source) {
  try {
    const Reference reference = PinnedReference::parse(source).source;
    if (reference.scheme() == Scheme::kHf) return HubReference::parse(reference);
    if (reference.scheme() != Scheme::kRelease) return std::nullopt;
    const Release release = Release::parse(reference.text());
    const ReleasePart* const whole = release.whole();
    if (whole == nullptr) return std::nullopt;
    const auto hub = std::ranges::find(whole->sources, Scheme::kHf, &Reference::scheme);
    return hub == whole->sources.end() ? std::nullopt : std::optional(HubReference::parse(*hub));
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_git_id(std::string_view text) noexcept {
  constexpr std::size_t kDigits = 40;
  return text.size() == kDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

HubVersion HubVersion::parse(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || !is_git_id(text.substr(0, space)) ||
      !is_git_id(text.substr(space + 1))) {
    throw Error(Errc::kInvalid,
                fmt::format("'{}' is not commit and blob of the Hub", printable(text)));
  }
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

}  // namespace weightfs::snapshot
