// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "snapshot/release.hpp"
#include "source/source.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace weightfs::source {

/// Several sources as one: what each of them has stands at its place in one tree, whose revision is
/// made of theirs. Two parts with a file of the same path are refused, unless one of them is an
/// overlay.
///
/// Thread-safe, as its parts are.
class ReleaseSource final : public Source {
 public:
  /// `sources`: one for each part.
  ReleaseSource(snapshot::Release release, std::vector<SourcePtr> sources);

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
  using Homes = std::unordered_map<std::string, std::size_t>;  ///< the part, by path in the tree

  [[nodiscard]] std::optional<std::size_t> known_home(const std::string& path) const;
  [[nodiscard]] std::size_t home(const std::string& path, std::stop_token stop);
  [[nodiscard]] snapshot::File within(std::size_t part, const snapshot::File& file) const;

  const snapshot::Release release_;
  const std::vector<SourcePtr> sources_;
  Synchronized<Homes> homes_;  ///< as of the last resolve()
};

}  // namespace weightfs::source
