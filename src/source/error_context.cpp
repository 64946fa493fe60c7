// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/error_context.hpp"

#include "base/error.hpp"

namespace weightfs::source {

void rethrow_with(const std::string& context) {
  try {
    throw;
  } catch (const TransientError& error) {
    throw TransientError(error.code(), context + ": " + error.what(), error.retry_after());
  } catch (const Error& error) {
    throw Error(error.code(), context + ": " + error.what());
  }
}

}  // namespace weightfs::source
