// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/hub_tree.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/file.hpp"
#include "snapshot/hub_reference.hpp"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace weightfs::source {

namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Errc::kInvalid, "is no answer of a Hub: " + what);
}

json parsed(std::string_view text) {
  json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) refuse("it is not JSON");
  return document;
}

std::string text_of(const json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || !member->is_string())
    refuse(fmt::format("an entry without \"{}\"", name));
  return member->get<std::string>();
}

std::uint64_t size_of(const json& object, const std::string& path) {
  const auto member = object.find("size");
  if (member == object.end() || !member->is_number_unsigned() ||
      member->get<std::uint64_t>() > snapshot::kMaxFileSize) {
    refuse(fmt::format("{} has no valid size", snapshot::printable(path)));
  }
  return member->get<std::uint64_t>();
}

HubEntry entry_of(const json& object) {
  HubEntry entry;
  entry.path = text_of(object, "path");
  snapshot::check_path(entry.path);
  entry.blob = text_of(object, "oid");
  if (!snapshot::is_git_id(entry.blob)) {
    refuse(fmt::format("the oid of {} is not git's", snapshot::printable(entry.path)));
  }
  const auto lfs = object.find("lfs");
  if (lfs == object.end() || lfs->is_null()) {
    entry.size = size_of(object, entry.path);
    return entry;
  }
  // Some Hubs give the pointer's size beside it, so only the one in there is the content's.
  if (!lfs->is_object()) refuse("an \"lfs\" that is no object");
  entry.size = size_of(*lfs, entry.path);
  std::string_view digest;
  const std::string oid = text_of(*lfs, "oid");
  digest = oid;
  if (digest.starts_with("sha256:")) digest.remove_prefix(7);
  entry.sha256 = Digest::parse(digest);
  if (!entry.sha256)
    refuse(fmt::format("the lfs.oid of {} is no sha256", snapshot::printable(entry.path)));
  return entry;
}

}  // namespace

TreePage parse_tree_page(std::string_view text) {
  const json page = parsed(text);
  if (!page.is_array()) refuse("a tree that is no list");
  TreePage parsed_page{.files = {}, .entries = page.size()};
  for (const json& object : page) {
    if (!object.is_object()) refuse("an entry that is no object");
    if (text_of(object, "type") == "file") parsed_page.files.push_back(entry_of(object));
  }
  return parsed_page;
}

std::string parse_commit(std::string_view text) {
  const json info = parsed(text);
  if (!info.is_object()) refuse("a revision that is no object");
  std::string commit = text_of(info, "sha");
  if (!snapshot::is_git_id(commit)) refuse("its sha is no commit");
  return commit;
}

std::optional<std::string> next_link(std::string_view link) {
  // <URL>; param; param, <URL>; ...: a comma may stand in a URL.
  while (!link.empty()) {
    const std::size_t open = link.find('<');
    const std::size_t close = link.find('>', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
    const std::string_view url = link.substr(open + 1, close - open - 1);
    link.remove_prefix(close + 1);
    const std::string_view parameters = link.substr(0, std::min(link.find('<'), link.size()));
    if (parameters.find("rel=\"next\"") != std::string_view::npos ||
        parameters.find("rel=next") != std::string_view::npos) {
      return std::string(url);
    }
  }
  return std::nullopt;
}

}  // namespace weightfs::source
