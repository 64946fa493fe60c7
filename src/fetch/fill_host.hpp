// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "fetch/fetch_counters.hpp"
#include "fetch/fetcher_options.hpp"
#include "fetch/fill_limits.hpp"
#include "fetch/fill_observer.hpp"
#include "fetch/memory_window.hpp"
#include "fetch/part.hpp"

#include <cstdint>
#include <memory>

namespace weightfs::fetch {

class BlobFill;
using BlobFillPtr = std::shared_ptr<BlobFill>;

/// What all fills of one Fetcher share.
struct FillContext {
  FillObserver& observer;
  const Clock& clock;
  const FetcherOptions options;
  Log log;
  MemoryWindow window;
  FillLimits limits;
  FetchTally tally;
};

/// What a fill asks of whoever runs it. Each call but released() only queues the fill: it returns
/// at once, may come when there is nothing to do after all, and from any thread, with no lock of
/// the fill held.
class FillHost {
 public:
  virtual ~FillHost() = default;

  /// A part of this urgency may be had from next_part().
  virtual void ready(const BlobFillPtr& fill, Urgency urgency) = 0;
  /// hash_step() has something to do.
  virtual void hash(const BlobFillPtr& fill) = 0;
  /// tick() should be called until it says that it need not.
  virtual void watch(const BlobFillPtr& fill) = 0;
  /// checkpoint() should be called within the checkpoint interval.
  virtual void dirty(const BlobFillPtr& fill) = 0;
  /// close_if_idle() may find that nobody needs the fill any more, or that it has failed.
  virtual void idle(const BlobFillPtr& fill) = 0;
  /// The fill has let go of its partial blob, or never had one: its key is free.
  virtual void released(const BlobFill& fill) = 0;

  [[nodiscard]] virtual FillContext& context() = 0;
};

}  // namespace weightfs::fetch
