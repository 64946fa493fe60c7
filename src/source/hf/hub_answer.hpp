// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/http_client.hpp"
#include "snapshot/hub_reference.hpp"

#include <string>

namespace weightfs::source {

/// What was asked of the Hub, for messages.
struct HubQuestion {
  std::string repository;    ///< as a person writes it
  std::string revision;      ///< empty: none in particular
  std::string path;          ///< of an entry; empty: about the repository
  std::string token_origin;  ///< where the token that was sent is from; empty: none was sent
};

/// What an answer of the Hub that is no success means. It says more than the status does
/// (X-Error-Code, X-Error-Message): a repository that is gated, private or missing, a revision or
/// an entry that there is not, a token that is not valid (any more), also for what everybody may
/// read. Error kPermission, kNotFound; TransientError(kUnavailable) for 408, 429 and 5xx with the
/// wait that was asked for; kInvalid for what is no answer of a Hub. Pure.
[[noreturn]] void throw_answer(const net::ResponseHead& head, const HubQuestion& question);

}  // namespace weightfs::source
