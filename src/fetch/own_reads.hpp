// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <atomic>
#include <cstdint>

namespace weightfs::fetch {

/// Adds what the thread that made it reads from disks to a total of bytes, as the kernel counts it
/// (getrusage(2)): with each count(), and when it goes. Confined to that thread. The total must
/// outlive it.
class OwnReads {
 public:
  explicit OwnReads(std::atomic<std::uint64_t>& total) noexcept;
  OwnReads(const OwnReads&) = delete;
  OwnReads& operator=(const OwnReads&) = delete;
  ~OwnReads() { count(); }

  void count() noexcept;

 private:
  std::atomic<std::uint64_t>& total_;
  std::uint64_t before_;
};

}  // namespace weightfs::fetch
