// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "source/secret_file.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace weightfs::source {

/// Who we are for the Hub: a token that was given, else what a file has now. The file is read again
/// whenever it has changed, so that a token can be replaced while the daemon runs. Thread-safe.
class HubToken {
 public:
  /// Both may be empty. Blanks around a token are dropped, as the Hub's own client does.
  HubToken(std::string token, std::filesystem::path file);

  /// nullopt where there is none. Error(kInvalid) for what cannot stand in a header, without
  /// showing it; for a file that is there and cannot be used as SecretFile says.
  [[nodiscard]] std::optional<std::string> current();
  /// For messages: where the token is from. Never the token.
  [[nodiscard]] std::string origin() const;

 private:
  const std::string given_;
  SecretFile file_;
};

}  // namespace weightfs::source
