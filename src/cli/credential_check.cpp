// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/credential_check.hpp"

#include "base/error.hpp"
#include "cli/exit_code.hpp"

#include <unistd.h>
#include <cerrno>

namespace weightfs::cli {

void check_credentials(const Settings& settings, const OutsideMount& outside) {
  const std::filesystem::path& file = settings.credentials.file;
  if (::access(file.c_str(), R_OK) != 0 && errno == EACCES) return;
  try {
    source::Credentials credentials(settings.credentials, Log::silent());
    for (const auto& path : credentials.files()) outside.check("a file of the credentials", path);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace weightfs::cli
