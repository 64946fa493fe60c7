// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/input_check.hpp"

#include "base/error.hpp"
#include "catalog/catalog.hpp"
#include "cli/exit_code.hpp"
#include "snapshot/reference.hpp"

namespace weightfs::cli {

void check_name_argument(const std::string& name) {
  try {
    catalog::check_name(name);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

void check_source_argument(const std::string& source) {
  try {
    (void)snapshot::Reference::parse(source);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace weightfs::cli
