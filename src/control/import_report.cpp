// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/import_report.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <utility>

namespace weightfs::control {

namespace {

using Outcome = fetch::Importer::Outcome;

constexpr std::size_t kMostListed = 1000;

void count(api::FileCount& counter, std::uint64_t size) {
  ++counter.files;
  counter.bytes += size;
}

api::FileCount& counter(api::ImportResult& result, Outcome outcome) {
  switch (outcome) {
    case Outcome::kReflinked:
      return result.reflinked;
    case Outcome::kLinked:
      return result.linked;
    case Outcome::kCopied:
      return result.copied;
    case Outcome::kWouldTake:
      return result.taken;
    case Outcome::kPresent:
      return result.present;
    case Outcome::kUnknown:
      return result.unknown;
    case Outcome::kMismatched:
      return result.mismatched;
    case Outcome::kFetching:
      return result.fetching;
    case Outcome::kFailed:
      break;
  }
  return result.failed;
}

/// nullopt for what was not taken.
std::optional<std::string> how_taken(Outcome outcome) {
  if (outcome == Outcome::kReflinked) return "reflinked";
  if (outcome == Outcome::kLinked) return "linked";
  if (outcome == Outcome::kCopied) return "copied";
  if (outcome == Outcome::kWouldTake) return "";
  return std::nullopt;
}

}  // namespace

ImportReport::ImportReport(const source::LocalTree& tree,
                           std::function<std::string(const fetch::Target&)> file_name)
    : tree_(tree), file_name_(std::move(file_name)) {
}

void ImportReport::add(const source::LocalTree::Listing& listing) {
  result_.with([&](api::ImportResult& result) {
    result.unknown = {.files = listing.others, .bytes = listing.other_bytes};
    result.passed_over = listing.passed_over;
    result.failed.files += listing.unreadable.size();
  });
  for (const auto& [path, error] : listing.unreadable) note_fault(path, error);
}

void ImportReport::add(const fetch::Importer::Imported& imported) {
  const std::uint64_t size = imported.file.size;
  const auto how = how_taken(imported.outcome);
  std::optional<api::ImportedFile> taken;
  if (how) {
    const fetch::Target& target = *imported.target;
    taken = {.path = tree_.full_path(imported.file.path),
             .file = file_name_(target),
             .sha256 = target.file().sha256->hex(),
             .size = size,
             .how = *how};
  }
  result_.with([&](api::ImportResult& result) {
    count(counter(result, imported.outcome), size);
    if (!taken) return;
    if (imported.outcome != Outcome::kWouldTake) count(result.taken, size);
    if (result.files.size() < kMostListed) result.files.push_back(*std::move(taken));
  });
  if (imported.outcome == Outcome::kMismatched) {
    note_fault(imported.file.path,
               Error(Errc::kCorrupt, fmt::format("its sha256 is not the one in its name, {}",
                                                 imported.file.claimed->hex())));
  } else if (imported.error) {
    note_fault(imported.file.path, *imported.error);
  }
}

void ImportReport::note_fault(const std::string& path, const Error& error) {
  result_.with([&](api::ImportResult& result) {
    if (result.faults.size() >= kMostListed) return;
    result.faults.push_back({.path = tree_.full_path(path),
                             .code = weightfs::name(error.code()),
                             .message = error.what()});
  });
}

}  // namespace weightfs::control
