// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "store/partial_blob.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weightfs::fetch {

/// A partial blob that several threads write to, and that ends once: commit, discard, quarantine
/// and close all want it to themselves. Whoever ends it need not wait for a write that is under
/// way: the thread that leaves last does the end.
///
/// Also stands for the blob's key: two partial blobs of one key would write over each other, so the
/// key is free for the next fill only when this one was released *and* its blob is closed.
///
/// Only local disk I/O happens within a Use, never a wait for the network, so the end is near once
/// end() was called. Thread-safe.
class SharedPartial {
 public:
  /// Ends the blob and closes it; returns what is to be done when it is closed, or null. Neither
  /// may throw. No lock is held around them.
  using Last = std::function<std::function<void()>(std::unique_ptr<store::PartialBlob>)>;

  /// Called on any thread; must not throw.
  struct Callbacks {
    std::function<void()> free;        ///< once: the key is free
    std::function<void()> given_back;  ///< the blob is closed, and its place is not needed any more
  };
  /// `blob` is null for a fill without a disk.
  SharedPartial(std::unique_ptr<store::PartialBlob> blob, Callbacks callbacks);
  SharedPartial(const SharedPartial&) = delete;
  SharedPartial& operator=(const SharedPartial&) = delete;

  /// The right to touch the blob, until destruction. Must not outlive its SharedPartial.
  class Use {
   public:
    Use(Use&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), blob_(other.blob_) {}
    Use& operator=(Use&&) = delete;
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      if (owner_) owner_->leave();
    }
    store::PartialBlob* operator->() const noexcept { return blob_; }

   private:
    friend class SharedPartial;
    Use(SharedPartial& owner, store::PartialBlob& blob) noexcept : owner_(&owner), blob_(&blob) {}
    SharedPartial* owner_;
    store::PartialBlob* blob_;
  };

  /// nullopt once end() was called.
  [[nodiscard]] std::optional<Use> use();

  enum class Ending : std::uint8_t { kKeep, kDiscard, kQuarantine };
  /// An end, as end() below. Trouble on the way is a warning in `log`: the blob is closed whatever
  /// its disk says.
  void close(Ending ending, std::string reason, Log log);
  struct Commit {
    Digest digest;
    std::vector<Midstate> midstates;
    /// Calls what it is given, which publishes; again after an Error, if it likes.
    std::function<void(const std::function<void()>&)> write;
    std::function<void(const store::Blob&)> published;
    std::function<void(const Error&)> failed;
  };
  /// An end as well; calls one of the last two when the blob is closed. A blob that could not be
  /// published is discarded, which gives the space back that it may have failed for.
  void commit(Commit commit);

  /// Hands the blob to `last`: now, or on the thread whose Use ends last. Only the first call
  /// counts.
  void end(Last last);
  /// The fill is over. Call after end().
  void release();

 private:
  struct State {
    std::unique_ptr<store::PartialBlob> blob;  ///< until it is handed to `last`
    unsigned users = 0;
    Last last;
    bool ended = false;
    bool open = false;  ///< the blob exists, here or in `last`
    bool released = false;
  };
  void leave();
  void run(Last last, std::unique_ptr<store::PartialBlob> blob);

  const Callbacks callbacks_;
  Synchronized<State> state_;
};

}  // namespace weightfs::fetch
