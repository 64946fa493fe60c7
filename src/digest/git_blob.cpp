// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "digest/git_blob.hpp"

#include "base/error.hpp"
#include "digest/hex.hpp"

#include <openssl/evp.h>

#include <array>
#include <memory>
#include <span>

namespace weightfs {

std::string git_blob_id(std::string_view content) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  // The terminating NUL of the head is part of it.
  const std::string head = "blob " + std::to_string(content.size()) + '\0';
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr) != 1 ||
      EVP_DigestUpdate(context.get(), head.data(), head.size()) != 1 ||
      EVP_DigestUpdate(context.get(), content.data(), content.size()) != 1 ||
      EVP_DigestFinal_ex(context.get(), bytes.data(), &size) != 1) {
    throw Error(Errc::kInternal, "SHA-1 is not available");
  }
  return hex(std::span(bytes).first(size));
}

}  // namespace weightfs
