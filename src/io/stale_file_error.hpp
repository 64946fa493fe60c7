// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"

#include <string>

namespace weightfs::io {

/// ESTALE: the file server no longer knows the handle. The path may lead to the file still.
class StaleFileError final : public Error {
 public:
  explicit StaleFileError(const std::string& message) : Error(Errc::kChanged, message) {}
};

}  // namespace weightfs::io
