// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/synchronized.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace weightfs::keeper::test {

/// The least that the kernel takes for a filesystem, spoken by hand over /dev/fuse: a root
/// directory with one file, "blob", that is passed through. Runs a thread until it is destroyed or
/// unmounted.
class ToyDaemon {
 public:
  struct Options {
    bool passthrough = true;
    std::int32_t backing_id = 0;         ///< of "blob"; 0: it is not passed through
    std::uint64_t blob_size = 0;         ///< 0: there is no such file
    bool flushes = true;                 ///< false: FUSE_FLUSH is answered by answer_flushes() only
    std::uint64_t attributes_valid = 0;  ///< seconds that the kernel may remember attributes
  };
  /// `fuse` must outlive it. Of a new session, INIT has been answered when the constructor returns.
  enum class Session { kNew, kResumed };
  ToyDaemon(const Fd& fuse, Options options, Session session = Session::kNew);
  ToyDaemon(const ToyDaemon&) = delete;
  ToyDaemon& operator=(const ToyDaemon&) = delete;
  ~ToyDaemon();

  /// How many FUSE_FLUSH wait.
  [[nodiscard]] std::size_t waiting_flushes();
  /// Answers each FUSE_FLUSH that waits, and those to come.
  void answer_flushes();

 private:
  bool serve_one();
  void answer(std::uint64_t unique, int error, std::span<const std::byte> body = {}) const;

  const Fd& fuse_;
  Options options_;
  Fd stop_;
  Synchronized<std::optional<std::vector<std::uint64_t>>> waiting_;  ///< nothing: answered at once
  std::jthread thread_;
};

}  // namespace weightfs::keeper::test
