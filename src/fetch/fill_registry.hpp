// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fetch/fill.hpp"
#include "fetch/fill_host.hpp"
#include "store/partial_blob.hpp"

#include <condition_variable>
#include <functional>
#include <unordered_map>
#include <vector>

namespace weightfs::fetch {

/// Single flight: at most one running fill per key, from before its partial blob is opened until
/// after it is closed. Thread-safe. Owns the running fills.
class FillRegistry {
 public:
  /// A fill to run, or one that need not (the blob is there).
  struct Made {
    BlobFillPtr running;
    FillPtr complete;
  };

  /// Joins the running fill of the key; makes one with `make` (outside the lock; may throw) where
  /// there is none. Waits while another thread makes or closes one: for the local disk, never for
  /// the network. Error(kCancelled) after close().
  [[nodiscard]] FillPtr join_or_make(const store::PartialKey& key,
                                     const std::function<Made()>& make);
  /// Calls `action` (outside the lock) while no fill of the key runs, is made or ends, and none
  /// can be made; does nothing where there is one, or after close().
  void without_fill(const store::PartialKey& key, const std::function<void()>& action);
  /// The key of `fill` is free.
  void release(const BlobFill& fill);

  /// The running fill of the key, null if there is none. Does not join it.
  [[nodiscard]] BlobFillPtr find(const store::PartialKey& key) const;
  [[nodiscard]] std::vector<BlobFillPtr> fills() const;
  /// Nothing can be joined or made any more; returns what is running.
  [[nodiscard]] std::vector<BlobFillPtr> close();

 private:
  struct State {
    std::unordered_map<store::PartialKey, BlobFillPtr> fills;  ///< null while being made
    bool closed = false;
  };
  void publish(const store::PartialKey& key, const BlobFillPtr& fill);

  Synchronized<State> state_;
  std::condition_variable_any changed_;
};

}  // namespace weightfs::fetch
