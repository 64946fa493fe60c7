// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"
#include "fetch/target.hpp"
#include "store/store.hpp"

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace weightfs::cache {

/// What a Governor governs: the bytes that are kept. Thread-safe.
class Stock {
 public:
  virtual ~Stock() = default;

  /// kPart: some bytes of it, and all the space that it takes. kFilling: the same, and somebody
  /// fetches the rest.
  enum class Presence { kNone, kPart, kFilling, kComplete };
  [[nodiscard]] virtual Presence presence(const fetch::Target& file) const = 0;
  /// Whether somebody reads it or fetches it, so that its removal would give nothing back now.
  [[nodiscard]] virtual bool in_use(const fetch::Target& file) const = 0;
  /// Whether what it has is known: no disk of it may be within reach yet.
  [[nodiscard]] virtual bool readable() const = 0;
  /// The disks that it is on, with what is there.
  [[nodiscard]] virtual std::vector<store::VolumeStatus> volumes() const = 0;

  /// Whether its bytes are on a disk that can give nothing back now.
  [[nodiscard]] virtual bool set_aside(const fetch::Target& file) const = 0;

  /// Takes a file out. What somebody fetches stays. Returns the bytes of a complete one, else 0.
  virtual std::uint64_t remove(const fetch::Target& file) = 0;
  /// Takes out the complete files that are none of these; returns their bytes.
  virtual std::uint64_t remove_but(const std::unordered_set<Digest>& known) = 0;
};

}  // namespace weightfs::cache
