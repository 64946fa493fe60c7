// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/url.hpp"

#include <string_view>

namespace weightfs::net {

/// Whether a server at `from` may send us to this address (as inet_ntop(3) writes it). Not to what
/// only this machine or its cloud's metadata service is behind: link-local addresses, those that
/// clouds give to such services, and loopback unless `from` is loopback itself. Who answers there
/// takes a request from this node for more than it is (CWE-918). Pure.
[[nodiscard]] bool may_lead_to(const Origin& from, std::string_view address) noexcept;

}  // namespace weightfs::net
