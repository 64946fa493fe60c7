// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
// The low-level functions are deprecated in OpenSSL 3 in favour of EVP, which hides the chaining
// value.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "digest/sha256.hpp"

#include "base/error.hpp"

namespace weightfs {

namespace {

constexpr std::uint64_t kBlock = 64;

void require_whole_blocks(std::uint64_t length) {
  if (length % kBlock != 0) {
    throw Error(Errc::kInternal, "a SHA-256 midstate exists at multiples of 64 bytes only");
  }
}

}  // namespace

Sha256::Sha256() {
  SHA256_Init(&context_);
}

Sha256::Sha256(const Midstate& midstate, std::uint64_t length) : length_(length) {
  require_whole_blocks(length);
  SHA256_Init(&context_);
  for (std::size_t word = 0; word < 8; ++word) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | midstate[4 * word + i];
    context_.h[word] = value;
  }
  const std::uint64_t bits = length * 8;
  context_.Nl = static_cast<SHA_LONG>(bits);
  context_.Nh = static_cast<SHA_LONG>(bits >> 32);
}

void Sha256::update(std::span<const std::byte> data) {
  SHA256_Update(&context_, data.data(), data.size());
  length_ += data.size();
}

Midstate Sha256::midstate() const {
  require_whole_blocks(length_);
  Midstate state;
  for (std::size_t word = 0; word < 8; ++word) {
    for (std::size_t i = 0; i < 4; ++i) {
      state[4 * word + i] = static_cast<std::uint8_t>(context_.h[word] >> (24 - 8 * i));
    }
  }
  return state;
}

Digest Sha256::digest() const {
  SHA256_CTX copy = context_;
  Digest::Bytes bytes;
  SHA256_Final(bytes.data(), &copy);
  return Digest(bytes);
}

}  // namespace weightfs
