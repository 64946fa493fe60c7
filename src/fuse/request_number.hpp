// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <cstdint>

namespace weightfs::fuse {

/// The kernel's number (`unique`) of the request that this thread is handing to libfuse, which
/// keeps it from the operations. Set for as long as the object lives; one at a time per thread.
class RequestNumber {
 public:
  /// Set in the number of a request that an earlier daemon had taken and not answered
  /// (FUSE_UNIQUE_RESEND).
  static constexpr std::uint64_t kResent = 1ULL << 63;

  explicit RequestNumber(std::uint64_t unique) noexcept { current_ = unique; }
  RequestNumber(const RequestNumber&) = delete;
  RequestNumber& operator=(const RequestNumber&) = delete;
  ~RequestNumber() { current_ = 0; }

  /// The number under which the request was sent first.
  [[nodiscard]] static std::uint64_t original() noexcept { return current_ & ~kResent; }
  [[nodiscard]] static bool resent() noexcept { return (current_ & kResent) != 0; }

 private:
  static inline thread_local std::uint64_t current_ = 0;
};

}  // namespace weightfs::fuse
