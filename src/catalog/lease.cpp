// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/lease.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

namespace weightfs::catalog {

void check_may_change(const Lease& lease, const LeaseAsker& asker) {
  if (!lease.user || asker.may == LeaseAsker::May::kAny || asker.user == lease.user) return;
  throw Error(Errc::kPermission,
              fmt::format("the lease {} was taken by user {} (for {}): only they, root and the "
                          "daemon's own user may renew it or end it",
                          lease.id, *lease.user, lease.owner));
}

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
