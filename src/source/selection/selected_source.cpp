// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/selection/selected_source.hpp"

#include "base/error.hpp"

#include <utility>
#include <vector>

namespace weightfs::source {

using snapshot::File;
using snapshot::Snapshot;

SelectedSource::SelectedSource(std::string reference, SourcePtr inner,
                               snapshot::Selection selection)
    : reference_(std::move(reference)), inner_(std::move(inner)), selection_(std::move(selection)) {
}

Snapshot SelectedSource::resolve(std::stop_token stop) {
  const Snapshot all = inner_->resolve(std::move(stop));
  std::vector<File> wanted;
  for (const File& file : all.files()) {
    if (selection_.takes(file.path)) wanted.push_back(file);
  }
  if (wanted.empty()) {
    throw Error(Errc::kNotFound, "none of the " + std::to_string(all.files().size()) +
                                     " files of " + describe() + " is wanted by the patterns");
  }
  return {reference_, all.revision(), std::move(wanted)};
}

void SelectedSource::read(const File& file, ByteRange range, Sink& sink, std::stop_token stop) {
  inner_->read(file, range, sink, std::move(stop));
}

void SelectedSource::begin_afresh(const File& file) {
  inner_->begin_afresh(file);
}

void SelectedSource::refute(const File& file) {
  inner_->refute(file);
}

bool SelectedSource::has_others(const File& file) const {
  return inner_->has_others(file);
}

bool SelectedSource::serves_ranges() const noexcept {
  return inner_->serves_ranges();
}

bool SelectedSource::has_local_files() const noexcept {
  return inner_->has_local_files();
}

std::optional<Fd> SelectedSource::open_local(const File& file) {
  return inner_->open_local(file);
}

std::string SelectedSource::describe() const {
  return inner_->describe();
}

}  // namespace weightfs::source
