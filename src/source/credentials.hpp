// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "net/http_client.hpp"
#include "net/tls_identity.hpp"
#include "net/url.hpp"
#include "source/credential_entry.hpp"
#include "source/secret_file.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weightfs::source {

/// Who we are for one URL.
struct Credential {
  net::Headers headers;  ///< secrets
  net::TlsIdentity tls;
  std::string origin;  ///< for messages: where it is from; empty where nothing is shown to anybody
};

/// Who we are for the servers that sources are at, by the entry of a credentials file with the
/// longest URL that the asked one is at or below. The file, and those that it names, count as they
/// are now: a stat(2) of each for every question. While a file that was changed cannot be used, its
/// last good content counts, and the log says so; one that is gone has no entries.
///
/// Thread-safe.
class Credentials {
 public:
  struct Options {
    std::filesystem::path file;                      ///< empty: there are none
    std::map<std::string, std::string> environment;  ///< what entries may name variables of
  };
  Credentials(Options options, Log log);

  /// Empty where no entry is for it. Error kInvalid, kPermission, kNotFound, kIo for a file that
  /// never could be used, and for a secret that is missing or cannot be sent; its message shows no
  /// secret.
  [[nodiscard]] Credential of(const net::Url& url);
  /// All files: the one itself and those that it names. Errors as of(); kNotFound without it.
  [[nodiscard]] std::vector<std::filesystem::path> files();

 private:
  using EntriesPtr = std::shared_ptr<const std::vector<CredentialEntry>>;
  struct State {
    SecretFile::ContentPtr content;  ///< what `entries` are from
    EntriesPtr entries;              ///< null: never any
    std::string complaint;           ///< the last that was logged
  };
  EntriesPtr entries();
  EntriesPtr read();
  [[nodiscard]] std::string text_of(const Secret& secret) const;
  [[nodiscard]] net::Headers headers_of(const CredentialEntry& entry) const;

  const Options options_;
  const Log log_;
  SecretFile file_;
  Synchronized<State> state_;
};

}  // namespace weightfs::source
