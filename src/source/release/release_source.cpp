// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/release/release_source.hpp"

#include "base/error.hpp"
#include "digest/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::source {

using snapshot::File;
using snapshot::ReleasePart;
using snapshot::Snapshot;

ReleaseSource::ReleaseSource(snapshot::Release release, std::vector<SourcePtr> sources)
    : release_(std::move(release)), sources_(std::move(sources)) {
}

Snapshot ReleaseSource::resolve(std::stop_token stop) {
  struct Placed {
    File file;
    std::size_t part = 0;
  };
  std::unordered_map<std::string, Placed> tree;
  std::string revisions;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const ReleasePart& part = release_.parts()[i];
    const Snapshot found = sources_[i]->resolve(stop);
    revisions += fmt::format("{} {}\n", part.name, found.revision());
    for (std::size_t index = 0; index < found.files().size(); ++index) {
      File file = found.files()[index];
      file.path = part.prefix() + file.path;
      const auto [there, added] = tree.try_emplace(file.path, Placed{file, i});
      if (added) continue;
      const ReleasePart& other = release_.parts()[there->second.part];
      if (part.overlay == other.overlay) {
        throw Error(Errc::kInvalid,
                    fmt::format("the parts {} and {} of the release both have {}: one of them must "
                                "be the overlay",
                                other.name, part.name, file.path));
      }
      if (part.overlay) there->second = {std::move(file), i};
    }
  }
  std::vector<File> files;
  Homes homes;
  for (auto& [path, placed] : tree) {
    homes.emplace(path, placed.part);
    files.push_back(std::move(placed.file));
  }
  homes_.with([&](Homes& known) { known = std::move(homes); });
  return {release_.text(), Digest::of(revisions).hex(), std::move(files)};
}

void ReleaseSource::read(const File& file, ByteRange range, Sink& sink, std::stop_token stop) {
  const std::size_t part = home(file.path, stop);
  sources_[part]->read(within(part, file), range, sink, std::move(stop));
}

void ReleaseSource::begin_afresh(const File& file) {
  if (const auto part = known_home(file.path)) sources_[*part]->begin_afresh(within(*part, file));
}

void ReleaseSource::refute(const File& file) {
  if (const auto part = known_home(file.path)) sources_[*part]->refute(within(*part, file));
}

bool ReleaseSource::has_others(const File& file) const {
  const auto part = known_home(file.path);
  return part && sources_[*part]->has_others(within(*part, file));
}

bool ReleaseSource::serves_ranges() const noexcept {
  return std::ranges::all_of(sources_, &Source::serves_ranges);
}

bool ReleaseSource::has_local_files() const noexcept {
  return std::ranges::any_of(sources_, &Source::has_local_files);
}

std::optional<Fd> ReleaseSource::open_local(const File& file) {
  const auto part = known_home(file.path);
  if (!part || !sources_[*part]->has_local_files()) return std::nullopt;
  return sources_[*part]->open_local(within(*part, file));
}

std::string ReleaseSource::describe() const {
  std::string text;
  for (const SourcePtr& source : sources_) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", source->describe());
  }
  return text;
}

/// By its path alone, if no other part could have it, else as it was listed.
std::optional<std::size_t> ReleaseSource::known_home(const std::string& path) const {
  std::optional<std::size_t> only;
  bool several = false;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!path.starts_with(release_.parts()[i].prefix())) continue;
    several = only.has_value();
    if (several) break;
    only = i;
  }
  if (!several) return only;
  return homes_.with([&](const Homes& homes) -> std::optional<std::size_t> {
    const auto found = homes.find(path);
    return found == homes.end() ? std::nullopt : std::optional(found->second);
  });
}

/// Which part a file is from is not in the snapshot: after a restart the parts are asked again.
std::size_t ReleaseSource::home(const std::string& path, std::stop_token stop) {
  if (const auto known = known_home(path)) return *known;
  static_cast<void>(resolve(std::move(stop)));
  if (const auto known = known_home(path)) return *known;
  throw Error(Errc::kChanged, fmt::format("no part of {} has {} any more", describe(), path));
}

File ReleaseSource::within(std::size_t part, const File& file) const {
  File inner = file;
  inner.path = file.path.substr(release_.parts()[part].prefix().size());
  return inner;
}

}  // namespace weightfs::source
