// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/tls_identity.hpp"
#include "net/url.hpp"
#include "source/secret_file.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::source {

/// Where a secret is: exactly one of the three is given.
struct Secret {
  std::string value;
  std::shared_ptr<SecretFile> file;
  std::string variable;  ///< of the environment
};

/// One entry of a credentials file. A value.
struct CredentialEntry {
  enum class Kind { kNone, kBearer, kBasic, kHeader };

  net::Url url;  ///< what it is for, with all that is below
  Kind kind = Kind::kNone;
  std::string name;  ///< of the user, or of the header
  Secret secret;
  net::TlsIdentity tls;  ///< without its version

  /// Same origin, and the path is this one or below it: whole segments count.
  [[nodiscard]] bool is_for(const net::Url& other) const;
};

/// The entries of the text of a credentials file: {"credentials": [{"url": ..., ...}, ...]},
/// comments allowed. Error(kInvalid) names the entry and the key, and never a value that may be
/// secret. Reads none of the files that it names. Pure.
[[nodiscard]] std::vector<CredentialEntry> parse_credentials(std::string_view text);

}  // namespace weightfs::source
