// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/reference.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/hub_reference.hpp"
#include "snapshot/release.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace weightfs::snapshot {

namespace {

constexpr std::size_t kMaxReferenceBytes = 8192;

struct SchemeName {
  std::string_view name;
  Scheme scheme;
  std::string_view example;
};

constexpr std::array kSchemes{
    SchemeName{"file", Scheme::kFile, "file:///data/llama"},
    SchemeName{"http", Scheme::kHttp, "http://host/models/llama/"},
    SchemeName{"https", Scheme::kHttps, "https://host/models/llama/"},
    SchemeName{"hf", Scheme::kHf, "hf://org/name@main"},
    SchemeName{"oci", Scheme::kOci, "oci://host/repository:tag"},
    SchemeName{"s3", Scheme::kS3, "s3://bucket/prefix/"},
    SchemeName{"release", Scheme::kRelease, "release://base=https://host/llama/&adapters/x=..."},
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// As shown_source(); of what is no URL, the password may reach to anywhere before an '@'.
std::string shown_refused(std::string_view text) {
  const std::size_t separator = text.find("://");
  if (text.find('@') == std::string_view::npos || text.substr(0, separator) == "file") {
    return shown_source(text);
  }
  return (separator == std::string_view::npos ? "" : std::string(text.substr(0, separator + 3))) +
         "...@...";
}

[[noreturn]] void refuse(std::string_view text, std::string_view what, std::string_view example) {
  throw Error(Errc::kInvalid, fmt::format("the source {} {}; an example: {}",
                                          printable(shown_refused(text)), what, example));
}

std::string normal_file_path(std::string_view text, std::string_view path,
                             std::string_view example) {
  if (!path.starts_with('/')) refuse(text, "has no absolute path after file://", example);
  std::string normal;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (component == "." || component == "..") {
      refuse(text, "has a \".\" or \"..\" component", example);
    }
    if (!component.empty()) normal.append("/").append(component);
    begin = end + 1;
  }
  return normal.empty() ? "/" : normal;
}

bool is_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0;
}

/// Host and port as they stand before the path: "host", "host:80", "[::1]:80".
bool is_authority(std::string_view authority) noexcept {
  std::string_view rest = authority;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos || end == 1) return false;
    rest.remove_prefix(end + 1);
  } else {
    const std::size_t end = std::min(authority.find(':'), authority.size());
    if (end == 0) return false;
    rest.remove_prefix(end);
  }
  return rest.empty() || (rest.starts_with(':') && is_port(rest.substr(1)));
}

/// A URL is kept as it was written but for the case of its host and an empty path.
std::string normal_url(std::string_view text, std::string_view rest, const SchemeName& scheme) {
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  const std::string_view authority = rest.substr(0, end);
  const std::string_view path = rest.substr(end);
  if (authority.find('@') != std::string_view::npos) {
    refuse(text, "carries a user or password: secrets come from files or the environment",
           scheme.example);
  }
  if (path.find('#') != std::string_view::npos) refuse(text, "has a fragment (#)", scheme.example);
  if (path.find('\\') != std::string_view::npos) refuse(text, "has a backslash", scheme.example);
  if (!is_authority(authority)) refuse(text, "has no valid host[:port]", scheme.example);
  return lower(authority) + (path.starts_with('/') ? "" : "/") + std::string(path);
}

bool is_control_or_space(char c) noexcept {
  return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
}

}  // namespace

Reference Reference::parse(std::string_view text) {
  const std::size_t separator = text.find("://");
  if (separator == std::string_view::npos) {
    refuse(text, "has no scheme (a directory is written file:///...)", kSchemes[0].example);
  }
  const std::string word = lower(text.substr(0, separator));
  const auto* const found =
      std::find_if(kSchemes.begin(), kSchemes.end(),
                   [&](const SchemeName& candidate) { return candidate.name == word; });
  if (found == kSchemes.end()) {
    refuse(word + "://",
           "has an unknown scheme (file, http, https, hf, oci, s3 and release are known)",
           kSchemes[0].example);
  }
  if (text.size() > kMaxReferenceBytes) refuse(text, "is too long", found->example);
  const std::string_view rest = text.substr(separator + 3);

  Reference reference;
  reference.scheme_ = found->scheme;
  if (found->scheme == Scheme::kRelease) {
    reference.text_ = Release::parse(std::string(kReleaseScheme) + std::string(rest)).text();
    reference.locator_ = reference.text_.substr(kReleaseScheme.size());
    return reference;
  }
  if (found->scheme == Scheme::kFile) {
    if (rest.find('\0') != std::string_view::npos) refuse(text, "has a NUL byte", found->example);
    reference.locator_ = normal_file_path(text, rest, found->example);
  } else {
    if (std::any_of(rest.begin(), rest.end(), is_control_or_space)) {
      refuse(text, "has a space or control character (write %20)", found->example);
    }
    if (found->scheme == Scheme::kHttp || found->scheme == Scheme::kHttps) {
      reference.locator_ = normal_url(text, rest, *found);
    } else if (found->scheme == Scheme::kHf) {
      reference.locator_ = HubReference::parse_locator(rest).text().substr(5);
    } else {
      if (rest.empty() || rest.starts_with('/')) {
        refuse(text, "names nothing after the scheme", found->example);
      }
      reference.locator_ = rest;
    }
  }
  reference.text_ = word + "://" + reference.locator_;
  return reference;
}

namespace {

std::string shown_release(std::string_view text) {
  try {
    return Release::parse(text).shown();
  } catch (const Error&) {
    return std::string(kReleaseScheme) + "...";
  }
}

std::string shown_hub(std::string_view locator) {
  try {
    return HubReference::parse_locator(locator).text();
  } catch (const Error&) {
    return "hf://...";
  }
}

}  // namespace

std::string shown_source(std::string_view text) {
  const std::size_t separator = text.find("://");
  const bool has_scheme = separator != std::string_view::npos;
  if (has_scheme && lower(text.substr(0, separator)) == "file") return std::string(text);
  // Its query is an endpoint, which has no secret.
  if (has_scheme && lower(text.substr(0, separator)) == "hf")
    return shown_hub(text.substr(separator + 3));
  if (has_scheme && lower(text.substr(0, separator + 3)) == kReleaseScheme) {
    return shown_release(text);
  }
  const std::size_t begin = has_scheme ? separator + 3 : 0;
  const std::size_t query = std::min(text.find_first_of("?#", begin), text.size());
  const std::size_t path = std::min(text.find('/', begin), query);
  const std::size_t at = text.substr(0, path).rfind('@');
  std::string shown(text.substr(0, begin));
  const bool has_user = at != std::string_view::npos && at >= begin;
  if (has_user) shown += "...";
  shown += text.substr(has_user ? at : begin, query - (has_user ? at : begin));
  if (query < text.size()) shown.append(1, text[query]).append("...");
  return shown;
}

}  // namespace weightfs::snapshot
