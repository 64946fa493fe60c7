// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"

#include <sys/types.h>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace weightfs::keeper {

/// Work that may block in the kernel beyond the reach of any signal, done in a child of the keeper,
/// so that only the child is lost: looking at a filesystem that does not answer, closing somebody
/// else's descriptor. Owns the child, which the destructor kills without waiting for it. Confined
/// to one thread.
class Errand {
 public:
  struct Result {
    std::int64_t value = 0;
    int closed_last = -1;  ///< its close may block: by then the child holds nothing else open
  };

  /// Forks. `work` runs between fork and _exit: async-signal-safe calls only, nothing thrown.
  /// Throws Error if there can be no child.
  explicit Errand(const std::function<Result()>& work);
  Errand(Errand&& other) noexcept;
  Errand& operator=(Errand&&) = delete;
  Errand(const Errand&) = delete;
  Errand& operator=(const Errand&) = delete;
  ~Errand();

  /// Waits for the end of the child, which is later than that of its work; whether it has ended.
  [[nodiscard]] bool wait(std::chrono::milliseconds patience);
  /// Once it has ended: what its work gave; nothing if it was killed before.
  [[nodiscard]] std::optional<std::int64_t> value() const noexcept { return value_; }

 private:
  pid_t pid_ = -1;
  Fd process_;  ///< pidfd
  Fd answer_;   ///< the read end of a pipe
  std::optional<std::int64_t> value_;
};

}  // namespace weightfs::keeper
