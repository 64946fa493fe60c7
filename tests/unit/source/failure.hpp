// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"

#include <optional>
#include <string>

namespace weightfs::test {

/// What a call threw.
struct Failure {
  Errc code{};
  bool transient = false;
  TransientError::Delay retry_after;
  std::string message;
};

/// nullopt where nothing was thrown. What is no Error goes through.
template <class F>
std::optional<Failure> failure_of(F&& f) {
  try {
    f();
  } catch (const TransientError& error) {
    return Failure{error.code(), true, error.retry_after(), error.what()};
  } catch (const Error& error) {
    return Failure{error.code(), false, std::nullopt, error.what()};
  }
  return std::nullopt;
}

}  // namespace weightfs::test
