// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "catalog/catalog.hpp"
#include "fetch/fetcher.hpp"
#include "fetch/warmer.hpp"
#include "telemetry/events.hpp"
#include "vfs/incarnations.hpp"
#include "vfs/last_errors.hpp"

#include <atomic>

namespace weightfs::vfs {

/// What the mount does about fills: where the listing had no digest, the snapshot of a completed
/// file learns it; a file whose bytes turned out to be wrong, or can be proven no more, gets a node
/// that has none of their pages; a loader gets the rest of its snapshot. Thread-safe; everything
/// given must outlive it.
class FillReactions final : public fetch::FillObserver {
 public:
  FillReactions(catalog::Catalog& catalog, Incarnations& incarnations, LastErrors& last_errors,
                Log log, telemetry::Events events = {})
      : catalog_(catalog),
        incarnations_(incarnations),
        last_errors_(last_errors),
        log_(std::move(log)),
        events_(events) {}

  /// The Warmer is made from the Fetcher, which needs its observer first. nullptr detaches it
  /// again.
  void attach(fetch::Warmer* warmer) noexcept { warmer_ = warmer; }

  void on_begun(const fetch::Target& target, fetch::Place place, std::uint64_t missing) override;
  void on_complete(const fetch::Target& target, const store::Blob& blob) override;
  [[nodiscard]] std::optional<Digest> learned(const fetch::Target& target) const override;
  void on_proven(const fetch::Target& target) override { incarnations_.prove(target.key()); }
  void on_shown(const fetch::Target& target, fetch::Place place) override;
  [[nodiscard]] std::optional<fetch::Place> shown(const fetch::Target& target) const override {
    return incarnations_.shown(target.key());
  }
  void on_disowned(const fetch::Target& target) override;
  void on_failed(const fetch::Target& target, const Error& error) override;
  void on_loader(const fetch::Target& target) override;
  [[nodiscard]] bool wanted(const fetch::Target& target) override;

 private:
  [[nodiscard]] telemetry::Event about_file(telemetry::EventKind kind,
                                            const fetch::Target& target) const;
  void tell(telemetry::EventKind kind, const char* action, const fetch::Target& target,
            const std::string& reason = {}) const;

  catalog::Catalog& catalog_;
  Incarnations& incarnations_;
  LastErrors& last_errors_;
  const Log log_;
  const telemetry::Events events_;
  std::atomic<fetch::Warmer*> warmer_ = nullptr;
};

}  // namespace weightfs::vfs
