// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "digest/digest.hpp"

#include <string>

namespace weightfs::tests {

/// The id of a made-up snapshot.
inline Digest snapshot(int number) {
  return Digest::of("snapshot " + std::to_string(number));
}

}  // namespace weightfs::tests
