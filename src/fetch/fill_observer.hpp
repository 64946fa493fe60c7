// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "fetch/target.hpp"
#include "store/blob.hpp"

namespace weightfs::fetch {

/// What fills mean to the rest of the node. Told about what happens to them, after it can be seen
/// (Fill::progress(), a new Fetcher::fill()) and before the reads that waited for it are answered.
/// Called without a lock held, on a fetch thread or on that of the read that found it out;
/// on_loader on the thread of the read that showed it. Must not block for long and must not throw.
/// Must outlive the Fetcher.
class FillObserver {
 public:
  virtual ~FillObserver() = default;
  /// Verified and published. `blob.digest` is news where the listing had none.
  virtual void on_complete(const Target& target, const store::Blob& blob) = 0;
  /// Bytes under the target's key that readers may have been given will not be proven any more:
  /// they were wrong, or of an object that has changed, or their disk was given up, or they came
  /// past the disk and a fill that keeps begins. What comes from now on need not fit them, so
  /// whatever still shows them (a node's pages) must not be handed to a new reader.
  ///
  /// The one event that comes before it can be seen: until it returns, Fetcher::fill() makes no new
  /// fill of that key. Whoever has an id for what readers see checks it again after
  /// Fetcher::fill(). Must not call the Fetcher. Can come from within Fetcher::fill().
  /// Not called where the bytes were proven otherwise: by the validator of a file whose digest is
  /// not known (it is part of the key), or by being held back (verify=strict).
  virtual void on_disowned(const Target& target) = 0;
  /// Over for now; a later open starts again, once what came is flushed. Comes after on_disowned,
  /// where that is due. Not called for fills that end because the process does.
  virtual void on_failed(const Target& target, const Error& error) = 0;
  /// Somebody reads this snapshot the way a loader does.
  virtual void on_loader(const Target& target) = 0;
  /// Asked when a fill closes, and when it is complete: whether anybody may still come for what it
  /// fetched. If not, that is neither kept for the next fill nor published.
  [[nodiscard]] virtual bool wanted(const Target& target) = 0;
};

}  // namespace weightfs::fetch
