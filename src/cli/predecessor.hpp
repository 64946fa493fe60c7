// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"

#include <chrono>
#include <thread>

namespace weightfs::cli {

/// Calls `take`, and again while it says Error(kBusy), for at most `patience`: a daemon whose
/// keeper was killed needs a moment to end, and whoever comes after it need not fail for that.
/// Returns what `take` returns; throws its last Error.
template <class Take>
auto after_predecessor(Take take, std::chrono::milliseconds patience = std::chrono::seconds(5)) {
  constexpr std::chrono::milliseconds kPoll{50};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    try {
      return take();
    } catch (const Error& error) {
      if (error.code() != Errc::kBusy || std::chrono::steady_clock::now() > deadline) throw;
    }
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace weightfs::cli
