// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/single_flight.hpp"
#include "base/synchronized.hpp"
#include "source/mirror/standing.hpp"
#include "source/source.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace weightfs::source {

/// Several sources that have the same, tried in order: the next one goes on where one failed, in
/// the middle of a file, too.
///
/// What they have is what the first that answers lists. Another takes its place only for files
/// that it lists itself, at the same path, with the same size and sha256: a file without a sha256
/// comes from who listed it or not at all. Which source that was stands in the
/// file's validator (snapshot::MirroredValidator).
///
/// Thread-safe, as its sources are.
class MirrorSource final : public Source {
 public:
  /// `reference`: what its snapshots say they are from. `sources`: at least one.
  MirrorSource(std::string reference, std::vector<SourcePtr> sources);

  /// Where all fail, the error of the first.
  [[nodiscard]] snapshot::Snapshot resolve(std::stop_token stop) override;
  void read(const snapshot::File& file, ByteRange range, Sink& sink, std::stop_token stop) override;
  void begin_afresh(const snapshot::File& file) override;
  void refute(const snapshot::File& file) override;
  [[nodiscard]] bool has_others(const snapshot::File& file) const override;
  [[nodiscard]] bool serves_ranges() const noexcept override;
  [[nodiscard]] bool has_local_files() const noexcept override;
  [[nodiscard]] std::optional<Fd> open_local(const snapshot::File& file) override;
  [[nodiscard]] std::string describe() const override;

 private:
  /// A source's own files that are what some sha256 and path say.
  using Listing = std::unordered_map<std::string, snapshot::File>;
  using ListingPtr = std::shared_ptr<const Listing>;

  [[nodiscard]] std::optional<snapshot::File> at(std::size_t source, const snapshot::File& file,
                                                 const std::stop_token& stop);
  ListingPtr listing(std::size_t source, const std::string& wanted, const std::stop_token& stop);

  const std::string reference_;
  const std::vector<SourcePtr> sources_;
  Standing standing_;
  struct Listed {
    ListingPtr files;
    std::chrono::steady_clock::time_point at;
  };
  Synchronized<std::map<std::size_t, Listed>> listings_;
  SingleFlight<std::size_t, ListingPtr> flights_;
};

}  // namespace weightfs::source
