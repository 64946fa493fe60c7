// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/hub_reference.hpp"
#include "snapshot/reference.hpp"
#include "source/hf/hub.hpp"
#include "source/source.hpp"

#include <memory>
#include <string>

namespace weightfs::source {

/// A repository of the Hugging Face Hub: models, datasets and spaces.
///
/// resolve() asks for the commit and its tree. Files in LFS or Xet come with their sha256; those in
/// git alone are fetched then and there, so that every snapshot has its id at once. Files are read
/// with ranged GETs at the signed URLs that the Hub gives out, which are asked for once and again
/// when they end. Which commit a file is of stands in its validator, so what a branch showed before
/// can be read for as long as the Hub has it.
///
/// Thread-safe. The Hub is shared with other sources.
class HfSource final : public Source {
 public:
  HfSource(const snapshot::Reference& reference, std::shared_ptr<Hub> hub);

  [[nodiscard]] snapshot::Snapshot resolve(std::stop_token stop) override;
  void read(const snapshot::File& file, ByteRange range, Sink& sink, std::stop_token stop) override;
  [[nodiscard]] std::optional<Fd> open_local(const snapshot::File& file) override;
  [[nodiscard]] std::string describe() const override;

 private:
  const std::string reference_;
  const snapshot::HubReference repository_;
  const std::shared_ptr<Hub> hub_;
};

}  // namespace weightfs::source
