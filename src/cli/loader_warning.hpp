// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/context.hpp"
#include "weightfs/values.hpp"

namespace weightfs::cli {

/// Says on standard error who may have files of two revisions, if anybody.
void warn_of_loader(const Context& context, const api::UpdateResult& result);

}  // namespace weightfs::cli
