// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace weightfs::source {

/// For how long a signed URL is good from the moment `date` on, by the clock of whoever signed
/// it: X-Amz-Date and X-Amz-Expires (SigV4 presigned), or Expires (seconds since 1970, as
/// CloudFront has it). nullopt where it does not say. Pure.
[[nodiscard]] std::optional<std::chrono::seconds> lifetime(std::string_view query,
                                                           std::chrono::sys_seconds date);

}  // namespace weightfs::source
