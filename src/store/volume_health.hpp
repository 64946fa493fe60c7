// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

namespace weightfs::store {

/// Whether a volume can be written to, as its last writes say: a disk that fails, was made
/// read-only or is gone takes nothing more, one that is full does again once there is room. How
/// long anything takes says nothing. Logs each change once. Thread-safe.
class VolumeHealth {
 public:
  VolumeHealth(std::filesystem::path directory, Log log);

  /// Does `write`, an operation that changes files of the volume, and learns from its Error, which
  /// goes up.
  template <class Write>
  decltype(auto) watch(Write&& write) {
    try {
      return write();
    } catch (const Error& error) {
      write_failed(error);
      throw;
    }
  }
  /// `wanted`: bytes that there was no room for, where that was it.
  void write_failed(const Error& error, std::uint64_t wanted = 0);
  /// Nothing is left of the space, whoever has taken it.
  void found_full();
  /// `free` bytes were found: it is full no more if that is more than was wanted, and enough for
  /// what the store writes beside.
  void found_room(std::uint64_t free);
  /// A probe could write: it is used again.
  void recovered();

  [[nodiscard]] bool usable() const noexcept { return !failed_; }
  /// Why not; or that it is full. Empty if all is well.
  [[nodiscard]] std::string trouble() const;

 private:
  struct Trouble {
    std::string failure;
    std::string full;
    std::uint64_t wanted = 0;
  };

  const std::filesystem::path directory_;
  const Log log_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> full_ = false;
  Synchronized<Trouble> trouble_;
};

}  // namespace weightfs::store
