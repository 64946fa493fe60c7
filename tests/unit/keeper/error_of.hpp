// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"

#include <optional>
#include <utility>

namespace weightfs::keeper::test {

/// The code of the Error that `body` throws, whatever it returns; nothing if it throws none.
template <class F>
std::optional<Errc> error_of(F&& body) {
  try {
    static_cast<void>(std::forward<F>(body)());
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

}  // namespace weightfs::keeper::test
