// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/lease.hpp"

#include "base/error.hpp"

namespace weightfs::catalog {

void check_lease_id(std::string_view id) {
  constexpr std::size_t kLongest = 128;
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  const bool good = !id.empty() && id.size() <= kLongest &&
                    id.find_first_not_of(kLetters) == std::string_view::npos &&
                    id.find_first_of("._-") != 0;
  if (good) return;
  throw Error(Errc::kInvalid,
              "the id of a lease must be 1 to 128 of A-Z, a-z, 0-9, '.', '_' and '-', and begin "
              "with a letter or a digit");
}

}  // namespace weightfs::catalog
