// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <openssl/sha.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weightfs {

/// The chaining value of SHA-256 after a whole number of 64-byte blocks (FIPS 180-4, H(i)).
///
/// Why it is worth a type: a blob's hash is computed once, front to back, and leaves one Midstate
/// per part behind at no cost. Any part can then be checked alone, on any core: start from the
/// midstate before it, hash the part, compare with the midstate after it. This is as strong as
/// SHA-256 itself, because two different parts with the same midstates before and after would be a
/// collision of its compression function. A second hash per part would double the CPU of every
/// fill.
using Midstate = std::array<std::uint8_t, Digest::kSize>;

/// Streaming SHA-256. Copyable. Not thread-safe; confined to one thread at a time.
///
/// Uses OpenSSL's low-level interface: the EVP one does not give the chaining value away. The code
/// behind both is the same, with SHA-NI where the processor has it.
class Sha256 {
 public:
  Sha256();
  /// Continues after `length` bytes (a multiple of 64) whose chaining value is `midstate`.
  Sha256(const Midstate& midstate, std::uint64_t length);

  void update(std::span<const std::byte> data);
  /// Only after a multiple of 64 bytes; otherwise Error(kInternal).
  [[nodiscard]] Midstate midstate() const;
  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }
  /// The digest of all bytes so far; the hasher itself can go on.
  [[nodiscard]] Digest digest() const;

 private:
  SHA256_CTX context_;
  std::uint64_t length_ = 0;
};

}  // namespace weightfs
