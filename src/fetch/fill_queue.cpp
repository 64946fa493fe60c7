// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/fill_queue.hpp"

#include <utility>

namespace weightfs::fetch {

void FillQueue::push(const BlobFillPtr& fill) {
  if (members_.insert(fill.get()).second) fills_.push_back(fill);
}

BlobFillPtr FillQueue::pop() {
  BlobFillPtr fill = std::move(fills_.front());
  fills_.pop_front();
  members_.erase(fill.get());
  return fill;
}

}  // namespace weightfs::fetch
