// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/redirect_target.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace weightfs::net {

namespace {

bool is_local(std::uint32_t ipv4, bool loopback_is_fine) noexcept {
  constexpr std::uint32_t kAlibabaMetadata = 0x6464'64c8;  // 100.100.100.200
  const std::uint32_t first = ipv4 >> 24;
  if (first == 127) return !loopback_is_fine;
  return first == 0 || ipv4 >> 16 == 0xa9fe || ipv4 == kAlibabaMetadata;
}

bool is_local(std::span<const std::uint8_t, 16> ipv6, bool loopback_is_fine) noexcept {
  constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr std::array<std::uint8_t, 16> kAmazonMetadata = {0xfd, 0, 0x0e, 0xc2, 0, 0, 0,    0,
                                                            0,    0, 0,    0,    0, 0, 0x02, 0x54};
  if (std::equal(kMapped.begin(), kMapped.end(), ipv6.begin())) {
    std::uint32_t ipv4 = 0;
    for (std::size_t i = 12; i < 16; ++i) ipv4 = ipv4 << 8 | ipv6[i];
    return is_local(ipv4, loopback_is_fine);
  }
  const bool zeros =
      std::all_of(ipv6.begin(), ipv6.end() - 1, [](std::uint8_t b) { return b == 0; });
  if (zeros && ipv6[15] == 1) return !loopback_is_fine;
  if (zeros && ipv6[15] == 0) return true;
  const bool link_local = ipv6[0] == 0xfe && (ipv6[1] & 0xc0) == 0x80;
  return link_local || std::equal(kAmazonMetadata.begin(), kAmazonMetadata.end(), ipv6.begin());
}

}  // namespace

bool may_lead_to(const Origin& from, std::string_view address) noexcept {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.starts_with('[')) address = address.substr(1, address.find(']') - 1);
  address = address.substr(0, address.find('%'));  // the zone of a link-local address
  if (address.size() >= text.size()) return true;
  std::copy(address.begin(), address.end(), text.begin());
  const bool from_here = from.is_loopback();
  in_addr ipv4 = {};
  if (::inet_pton(AF_INET, text.data(), &ipv4) == 1)
    return !is_local(ntohl(ipv4.s_addr), from_here);
  in6_addr ipv6 = {};
  if (::inet_pton(AF_INET6, text.data(), &ipv6) == 1) {
    return !is_local(std::span<const std::uint8_t, 16>(ipv6.s6_addr), from_here);
  }
  return true;
}

}  // namespace weightfs::net
