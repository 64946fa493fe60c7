// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <compare>
#include <string>

namespace weightfs::net {

/// Who we are to one server when TLS begins, and whom we take it to be vouched for by. A value; two
/// requests share a connection only where it is the same.
struct TlsIdentity {
  std::string certificate = {};  ///< PEM file, with what leads to its authority; empty: none
  std::string key = {};          ///< PEM file, not encrypted; empty: it is in `certificate`
  std::string ca_bundle = {};    ///< PEM file; empty: the client's
  /// Which content of these files it is: another text makes new connections.
  std::string version = {};

  auto operator<=>(const TlsIdentity&) const = default;
};

}  // namespace weightfs::net
