// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"

#include <string>

namespace weightfs::store {

/// The index cannot be read as what it is. It is rebuilt from the files at the next open; to
/// callers who do not know that, the disk failed.
class IndexDamaged final : public Error {
 public:
  explicit IndexDamaged(const std::string& message) : Error(Errc::kIo, message) {}
};

}  // namespace weightfs::store
