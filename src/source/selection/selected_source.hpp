// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/selection.hpp"
#include "source/source.hpp"

#include <string>

namespace weightfs::source {

/// Of what another source has, the files that are wanted. Thread-safe, as the other is.
class SelectedSource final : public Source {
 public:
  /// `reference`: what its snapshots say they are from.
  SelectedSource(std::string reference, SourcePtr inner, snapshot::Selection selection);

  /// Error(kNotFound) where no file is wanted.
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
  const std::string reference_;
  const SourcePtr inner_;
  const snapshot::Selection selection_;
};

}  // namespace weightfs::source
