// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "fetch/part.hpp"
#include "fetch/target.hpp"
#include "store/blob.hpp"

#include <cstdint>
#include <optional>

namespace weightfs::fetch {

/// What fills mean to the rest of the node. Told about what happens to them, after it can be seen
/// (Fill::progress(), a new Fetcher::fill()) and before the reads that waited for it are answered.
/// Called without a lock held, on a fetch thread or on that of the read that found it out;
/// on_loader on the thread of the read that showed it. Must not block for long and must not throw.
/// Must outlive the Fetcher.
class FillObserver {
 public:
  virtual ~FillObserver() = default;
  /// A fill is about to ask its source for the bytes that are `missing`, and to keep them in
  /// `place`; or goes on past a disk that has failed. Must not call the Fetcher: comes from within
  /// Fetcher::fill().
  virtual void on_begun(const Target& /*target*/, Place /*place*/, std::uint64_t /*missing*/) {}
  /// Verified and published. `blob.digest` is news where the listing had none: it is remembered, so
  /// that whoever made his target before finds it with learned().
  virtual void on_complete(const Target& target, const store::Blob& blob) = 0;
  /// The digest of a file whose listing had none, if it has become known since the target was made.
  [[nodiscard]] virtual std::optional<Digest> learned(const Target& target) const = 0;
  /// Verified, and not published, since nobody may come for it (wanted). Before it can be seen.
  virtual void on_proven(const Target& target) = 0;
  /// Readers are about to get bytes under the target's key that nothing has proven yet. Once for
  /// each fill and place, or more often, and before they get them: it is to be remembered for as
  /// long as what shows them lives, which may be longer than this process.
  virtual void on_shown(const Target& target, Place place) = 0;
  /// What is remembered of on_shown: where the latest of those bytes were kept. nullopt where there
  /// were none, or all of them have been proven (on_complete, on_proven) or disowned since.
  [[nodiscard]] virtual std::optional<Place> shown(const Target& target) const = 0;
  /// Bytes under the target's key that readers may have been given will not be proven any more:
  /// they were wrong, or of an object that has changed, or their disk was given up, or they came
  /// past the disk and a fill that keeps begins, or they were on a disk that does not have them any
  /// more, and a fill begins without them. What comes from now on need not fit them, so
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
