// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/loader_warning.hpp"

#include "cli/printable.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

void warn_of_loader(const Context& context, const api::UpdateResult& result) {
  if (result.loader.empty()) return;
  context.streams().err << fmt::format(
      "weightfs: {} was loading {} and may have files of both revisions\n",
      printable(result.loader), printable(result.name));
}

}  // namespace weightfs::cli
