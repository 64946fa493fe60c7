// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <utility>

namespace weightfs {

/// An owned file descriptor. Move-only; closes on destruction and ignores close's errors, so
/// whoever needs durability calls fsync first.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int value() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  /// Gives the descriptor away; the caller closes it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept;

  /// A second descriptor (close-on-exec) of the same open file. Throws Error.
  [[nodiscard]] Fd duplicate() const;

 private:
  int fd_ = -1;
};

}  // namespace weightfs
