// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// The extended attributes of Filesystem: what a person or a script asks a path without the command
// line.

#include "snapshot/reference.hpp"
#include "vfs/filesystem.hpp"

#include <utility>

namespace weightfs::vfs {

namespace {

constexpr std::string_view kPrefix = "user.weightfs.";

}  // namespace

std::vector<std::pair<std::string, std::string>> Filesystem::all_attributes(NodeId node) {
  const PlacePtr shared = place_of(node);
  const Place& place = *shared;
  std::vector<std::pair<std::string, std::string>> all;
  if (!place.is_view()) return all;
  const auto add = [&](std::string_view name, std::string value) {
    all.emplace_back(std::string(kPrefix) + std::string(name), std::move(value));
  };
  const snapshot::Snapshot& snapshot = *place.snapshot;
  add("source", snapshot::shown_source(snapshot.source()));
  add("revision", snapshot.revision());
  if (snapshot.id()) add("snapshot", snapshot.id()->hex());
  add("pinned", catalog_.pinned(snapshot.key()) ? "1" : "0");
  if (const snapshot::File* file = place.file()) {
    const fetch::Target wanted = target(place);
    const Residence here = residence(wanted);
    if (file->sha256) add("digest", "sha256:" + file->sha256->hex());
    add("resident", std::to_string(here.bytes));
    add("state", here.complete ? "complete" : here.bytes > 0 ? "filling" : "absent");
    if (const auto error = last_errors_.find(wanted.key())) add("error", *error);
  }
  return all;
}

std::vector<std::string> Filesystem::attribute_names(NodeId node) {
  std::vector<std::string> names;
  for (auto& [name, value] : all_attributes(node)) names.push_back(std::move(name));
  return names;
}

std::optional<std::string> Filesystem::attribute(NodeId node, const std::string& name) {
  if (!name.starts_with(kPrefix))
    return std::nullopt;  // security.*, system.*: asked for constantly
  for (auto& [known, value] : all_attributes(node)) {
    if (known == name) return std::move(value);
  }
  return std::nullopt;
}

}  // namespace weightfs::vfs
