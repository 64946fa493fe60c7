// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "fetch/target.hpp"
#include "store/blob.hpp"

namespace weightfs::fetch {

/// Told about what happens to fills, after it can be seen (state(), a new Fetcher::fill()) and
/// before the reads that waited for it are answered. Called without a lock held, on a fetch thread;
/// on_loader on the thread of the read that showed it. Must not block for long and must not throw.
/// Must outlive the Fetcher.
class FillObserver {
 public:
  virtual ~FillObserver() = default;
  /// Verified and published. `blob.digest` is news where the listing had none.
  virtual void on_complete(const Target& target, const store::Blob& blob) = 0;
  /// Over for now; a later open starts again. On kCorrupt the pages that readers have are poisoned.
  /// Not called for fills that end because the process does.
  virtual void on_failed(const Target& target, const Error& error) = 0;
  /// Somebody reads this snapshot the way a loader does.
  virtual void on_loader(const Target& target) = 0;
};

}  // namespace weightfs::fetch
