// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/input_check.hpp"

#include "base/error.hpp"
#include "catalog/catalog.hpp"
#include "cli/exit_code.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/reference.hpp"

namespace weightfs::cli {

void check_name_argument(const std::string& name) {
  if (!snapshot::is_utf8(name)) throw UsageError("the name of a model is UTF-8");
  try {
    catalog::check_name(name);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

void check_source_argument(const std::string& source) {
  if (!snapshot::is_utf8(source)) {
    throw UsageError("a source is written in UTF-8; other bytes of a URL as %XX");
  }
  try {
    (void)snapshot::Reference::parse(source);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

void check_lease_argument(const std::string& id) {
  try {
    catalog::check_lease_id(id);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace weightfs::cli
