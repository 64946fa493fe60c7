// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/pinned_reference.hpp"

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

std::string shown_reference(const Snapshot& snapshot) {
  return fmt::format("{}@{}", shown_source(snapshot.source()),
                     snapshot.id() ? snapshot.id()->hex() : snapshot.key().hex());
}

}  // namespace weightfs::snapshot
