// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/open_files.hpp"

namespace weightfs::vfs {

namespace {

// Whether what it serves has come to an end. A source that was out of reach is asked again.
bool failed(const Backing& backing) {
  const auto* fill = std::get_if<fetch::FillPtr>(&backing);
  return fill != nullptr && (*fill)->progress().state == fetch::FillState::kFailed;
}

// Bytes that were wrong or of another version stay an error for whoever reads them.
bool failed_for_good(const Backing& backing) {
  const auto* fill = std::get_if<fetch::FillPtr>(&backing);
  const auto error = fill == nullptr ? std::nullopt : (*fill)->error();
  return error && (error->code() == Errc::kCorrupt || error->code() == Errc::kChanged);
}

}  // namespace

Backing OpenFiles::ensure(NodeId node, const PlacePtr& place, Use use, const Make& make) {
  const auto known = files_.with([&](Files& files) -> std::optional<Backing> {
    const auto found = files.find(node.value());
    if (found == files.end()) return std::nullopt;
    return found->second.backing;
  });
  const bool usable = known && (!failed(*known) || (use == Use::kRead && failed_for_good(*known)));
  if (usable && use == Use::kRead) return *known;  // nothing to note: the usual case of a read
  // Two threads may make the same backing at once: both get the same fill or blob from below.
  const Backing backing = usable ? *known : make();
  files_.with([&](Files& files) {
    OpenFile& file = files[node.value()];
    if (use == Use::kOpen) ++file.opens;
    if (!file.place) file.place = place;
    file.backing = backing;
  });
  return backing;
}

Backing OpenFiles::acquire(NodeId node, const PlacePtr& place, const Make& make) {
  return ensure(node, place, Use::kOpen, make);
}

Backing OpenFiles::find(NodeId node, const PlacePtr& place, const Make& make) {
  return ensure(node, place, Use::kRead, make);
}

PlacePtr OpenFiles::place(NodeId node) const {
  return files_.with([&](const Files& files) -> PlacePtr {
    const auto found = files.find(node.value());
    return found == files.end() ? nullptr : found->second.place;
  });
}

void OpenFiles::adopt(NodeId node, const PlacePtr& place, std::uint32_t opens) {
  files_.with([&](Files& files) {
    OpenFile& file = files[node.value()];
    file.opens += opens;
    if (!file.place) file.place = place;
  });
}

PlacePtr OpenFiles::release(NodeId node) {
  PlacePtr place;
  // Destroyed after the lock: it may close a partial blob.
  const auto gone = files_.with([&](Files& files) -> Files::node_type {
    const auto found = files.find(node.value());
    if (found == files.end()) return {};
    place = found->second.place;
    if (found->second.opens > 1) {
      --found->second.opens;
      return {};
    }
    return files.extract(found);
  });
  return place;
}

std::uint64_t OpenFiles::count() const {
  return files_.with([](const Files& files) { return files.size(); });
}

bool OpenFiles::filling(NodeId node) const {
  const auto fill = files_.with([&](const Files& files) -> fetch::FillPtr {
    const auto found = files.find(node.value());
    if (found == files.end() || !found->second.backing) return nullptr;
    const auto* backing = std::get_if<fetch::FillPtr>(&*found->second.backing);
    return backing == nullptr ? nullptr : *backing;
  });
  return fill && fill->progress().state == fetch::FillState::kFilling;
}

}  // namespace weightfs::vfs
