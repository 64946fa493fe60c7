// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/source_argument.hpp"

#include "base/error.hpp"
#include "cli/exit_code.hpp"
#include "snapshot/pinned_reference.hpp"
#include "snapshot/release.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::cli {

namespace {

using snapshot::PinnedReference;
using snapshot::Reference;
using snapshot::ReleasePart;

/// What a model that is no release of several parts is written as the only part of.
constexpr const char* kOnlyPart = "base";

std::vector<ReleasePart> parts_of(const SourceArgument& given) {
  std::vector<ReleasePart> parts;
  for (const std::string& part : given.parts) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      throw UsageError(fmt::format("--part {}: it is written PART=SOURCE", part));
    }
    parts.push_back({.name = part.substr(0, equals),
                     .sources = {Reference::parse(part.substr(equals + 1))},
                     .overlay = false,
                     .selection = {}});
  }
  for (const std::string& overlay : given.overlays) {
    const auto part = std::ranges::find(parts, overlay, &ReleasePart::name);
    if (part == parts.end()) {
      throw UsageError(fmt::format("--overlay {}: there is no such part", overlay));
    }
    part->overlay = true;
  }
  return parts;
}

std::string put_together(const SourceArgument& given) {
  ReleasePart part{
      .name = kOnlyPart, .sources = {}, .overlay = false, .selection = {given.allow, given.ignore}};
  // SOURCE@REVISION says what the whole is to be, whichever of them has it.
  PinnedReference whole;
  for (const std::string& source : given.sources) {
    PinnedReference reference = PinnedReference::parse(source);
    if (reference.revision) whole.revision = reference.revision;
    part.sources.push_back(std::move(reference.source));
  }
  whole.source = Reference::parse(snapshot::Release({std::move(part)}).text());
  return whole.text();
}

}  // namespace

std::string SourceArgument::reference() const {
  if (sources.empty() == parts.empty()) {
    throw UsageError("either a SOURCE or --part says where the model comes from");
  }
  const bool selects = !allow.empty() || !ignore.empty();
  if (!parts.empty() && selects) {
    throw UsageError("--allow and --ignore are not for a release of several parts");
  }
  if (!overlays.empty() && parts.empty()) {
    throw UsageError("--overlay names a --part, and there is none");
  }
  try {
    if (!parts.empty()) return snapshot::Release(parts_of(*this)).text();
    return sources.size() == 1 && !selects ? sources.front() : put_together(*this);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace weightfs::cli
