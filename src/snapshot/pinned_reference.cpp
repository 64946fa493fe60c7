// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/pinned_reference.hpp"

#include "snapshot/hub_reference.hpp"

#include <fmt/format.h>

namespace weightfs::snapshot {

PinnedReference PinnedReference::parse(std::string_view text) {
  PinnedReference pinned;
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    pinned.revision = Digest::parse(text.substr(at + 1));
    if (pinned.revision) text = text.substr(0, at);
  }
  pinned.source = Reference::parse(text);
  return pinned;
}

std::string PinnedReference::text() const {
  return revision ? fmt::format("{}@{}", source.text(), revision->hex()) : source.text();
}

bool PinnedReference::fixed() const {
  return revision || (source.scheme() == Scheme::kHf && HubReference::parse(source).is_commit());
}

std::string shown_reference(const Snapshot& snapshot) {
  if (const Reference source = Reference::parse(snapshot.source());
      source.scheme() == Scheme::kHf) {
    HubReference hub = HubReference::parse(source);
    hub.revision = snapshot.revision();
    return hub.text();
  }
  return fmt::format("{}@{}", shown_source(snapshot.source()),
                     snapshot.id() ? snapshot.id()->hex() : snapshot.key().hex());
}

}  // namespace weightfs::snapshot
