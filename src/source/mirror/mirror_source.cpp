// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/mirror/mirror_source.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/mirrored_validator.hpp"
#include "source/guarded_sink.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace weightfs::source {

using snapshot::File;
using snapshot::MirroredValidator;
using snapshot::Snapshot;
using std::chrono::steady_clock;

namespace {

/// A source that moved nothing for so long before it was given up has failed, whoever gave up.
constexpr std::chrono::seconds kStalled{1};
/// A listing that lacks a file is not asked for again before.
constexpr std::chrono::seconds kListingAge{60};

std::string name_of(const File& file) {
  return file.sha256->hex() + file.path;
}

/// Passes on, and notes when the last byte came.
class WatchedSink final : public Sink {
 public:
  explicit WatchedSink(GuardedSink& sink) : sink_(sink) {}

  void write(std::uint64_t offset, std::span<const std::byte> data) override {
    last_ = steady_clock::now();
    sink_.write(offset, data);
  }
  void skipped(std::uint64_t bytes) override {
    last_ = steady_clock::now();
    sink_.skipped(bytes);
  }
  [[nodiscard]] bool stalled() const { return steady_clock::now() - last_ >= kStalled; }

 private:
  GuardedSink& sink_;
  steady_clock::time_point last_ = steady_clock::now();
};

}  // namespace

MirrorSource::MirrorSource(std::string reference, std::vector<SourcePtr> sources)
    : reference_(std::move(reference)), sources_(std::move(sources)), standing_(sources_.size()) {
}

Snapshot MirrorSource::resolve(std::stop_token stop) {
  std::exception_ptr first;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    try {
      const Snapshot found = sources_[i]->resolve(stop);
      std::vector<File> files;
      for (const File& file : found.files()) {
        files.push_back(file);
        files.back().validator = MirroredValidator{i, file.validator}.text();
      }
      return {reference_, found.revision(), std::move(files)};
    } catch (const Error& error) {
      if (error.code() == Errc::kCancelled) throw;
      if (!first) first = std::current_exception();
    }
  }
  std::rethrow_exception(first);
}

void MirrorSource::read(const File& file, ByteRange range, Sink& sink, std::stop_token stop) {
  GuardedSink guarded(sink, range);
  std::exception_ptr first;
  const Digest name = file.sha256.value_or(Digest());
  for (const std::size_t i : standing_.order(name, steady_clock::now())) {
    WatchedSink watched(guarded);
    try {
      const std::optional<File> inner = at(i, file, stop);
      if (!inner) continue;
      standing_.served(i, name);
      sources_[i]->read(*inner, guarded.rest(), watched, stop);
      standing_.worked(i);
      return;
    } catch (const Error& error) {
      if (guarded.failed()) throw;
      const bool given_up = error.code() == Errc::kCancelled;
      if (!given_up || watched.stalled()) standing_.failed(i, steady_clock::now());
      if (given_up) throw;
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
  throw Error(Errc::kChanged, fmt::format("none of {} has {} with its sha256 any more", describe(),
                                          snapshot::printable(file.path)));
}

void MirrorSource::begin_afresh(const File& file) {
  if (file.sha256) standing_.begin(*file.sha256);
  const auto origin = MirroredValidator::parse(file.validator);
  if (!origin || origin->source >= sources_.size()) return;
  File inner = file;
  inner.validator = origin->inner;
  sources_[origin->source]->begin_afresh(inner);
}

void MirrorSource::refute(const File& file) {
  if (file.sha256) standing_.refuted(*file.sha256);
}

bool MirrorSource::has_others(const File& file) const {
  return file.sha256 && standing_.hopeful(*file.sha256);
}

bool MirrorSource::serves_ranges() const noexcept {
  return std::ranges::all_of(sources_, &Source::serves_ranges);
}

bool MirrorSource::has_local_files() const noexcept {
  return std::ranges::any_of(sources_, &Source::has_local_files);
}

/// Of those that have local files alone, so that nothing is asked of others.
std::optional<Fd> MirrorSource::open_local(const File& file) {
  const auto origin = MirroredValidator::parse(file.validator);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (!sources_[i]->has_local_files()) continue;
    try {
      if (const auto inner = at(i, file, {})) {
        if (auto opened = sources_[i]->open_local(*inner)) return opened;
      }
    } catch (const Error&) {
      if (origin && origin->source == i) throw;
    }
  }
  return std::nullopt;
}

std::string MirrorSource::describe() const {
  std::string text;
  for (const SourcePtr& source : sources_) {
    text += fmt::format("{}{}", text.empty() ? "" : " or ", source->describe());
  }
  return text;
}

/// The file as this source knows it; nullopt where it does not prove that it has it.
std::optional<File> MirrorSource::at(std::size_t source, const File& file,
                                     const std::stop_token& stop) {
  const auto origin = MirroredValidator::parse(file.validator);
  if (origin && origin->source == source) {
    File inner = file;
    inner.validator = origin->inner;
    return inner;
  }
  if (!file.sha256) return std::nullopt;
  const std::string name = name_of(file);
  const ListingPtr files = listing(source, name, stop);
  const auto found = files->find(name);
  if (found == files->end() || found->second.size != file.size) return std::nullopt;
  return found->second;
}

/// What the source lists, asked for once, and again after a while if it lacks what is wanted.
MirrorSource::ListingPtr MirrorSource::listing(std::size_t source, const std::string& wanted,
                                               const std::stop_token& stop) {
  const auto known = listings_.with([&](const auto& listings) -> std::optional<Listed> {
    const auto found = listings.find(source);
    return found == listings.end() ? std::nullopt : std::optional(found->second);
  });
  if (known && (known->files->contains(wanted) || steady_clock::now() - known->at < kListingAge)) {
    return known->files;
  }
  return flights_.get(source, stop, [&]() -> ListingPtr {
    const Snapshot found = sources_[source]->resolve(stop);
    auto files = std::make_shared<Listing>();
    for (const File& file : found.files()) {
      if (file.sha256) files->emplace(name_of(file), file);
    }
    listings_.with([&](auto& listings) {
      listings.insert_or_assign(source, Listed{files, steady_clock::now()});
    });
    return files;
  });
}

}  // namespace weightfs::source
