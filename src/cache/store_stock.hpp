// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cache/stock.hpp"

namespace weightfs::cache {

/// Told what leaves the store, on the thread that makes it leave. Must not call the Governor or the
/// Fetcher.
class EvictionObserver {
 public:
  virtual ~EvictionObserver() = default;
  /// The blob is no longer in the store.
  virtual void blob_gone(const Digest& digest) = 0;
  /// What was fetched of this content is about to be thrown away without a verdict.
  virtual void bytes_discarded(const Digest& content_key) = 0;
};

/// The store as something to be governed. Stateless. What is given must outlive it.
class StoreStock final : public Stock {
 public:
  StoreStock(store::Store& store, EvictionObserver& observer)
      : store_(store), observer_(observer) {}

  [[nodiscard]] Presence presence(const fetch::Target& file) const override;
  [[nodiscard]] bool in_use(const fetch::Target& file) const override;
  [[nodiscard]] bool set_aside(const fetch::Target& file) const override;
  [[nodiscard]] bool readable() const override { return store_.readable(); }
  [[nodiscard]] std::vector<store::VolumeStatus> volumes() const override {
    return store_.volumes();
  }
  std::uint64_t remove(const fetch::Target& file) override;
  std::uint64_t remove_but(const std::unordered_set<Digest>& known) override;

 private:
  [[nodiscard]] bool complete(const snapshot::File& file) const;
  void discard_partial(const fetch::Target& file);

  store::Store& store_;
  EvictionObserver& observer_;
};

}  // namespace weightfs::cache
