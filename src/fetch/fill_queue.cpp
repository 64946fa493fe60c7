// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/fill_queue.hpp"

#include "fetch/blob_fill.hpp"

#include <iterator>
#include <utility>

namespace weightfs::fetch {

void FillQueue::push(const BlobFillPtr& fill) {
  if (members_.insert(fill.get()).second) fills_.push_back(fill);
}

BlobFillPtr FillQueue::pop() {
  return take(fills_.begin());
}

BlobFillPtr FillQueue::pop_preceding() {
  auto first = fills_.begin();
  Precedence best = (*first)->precedence();
  for (auto fill = std::next(first); fill != fills_.end(); ++fill) {
    const Precedence precedence = (*fill)->precedence();
    if (!(precedence < best)) continue;
    first = fill;
    best = precedence;
  }
  return take(first);
}

BlobFillPtr FillQueue::take(std::deque<BlobFillPtr>::iterator at) {
  BlobFillPtr fill = std::move(*at);
  fills_.erase(at);
  members_.erase(fill.get());
  return fill;
}

}  // namespace weightfs::fetch
