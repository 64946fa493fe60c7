// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/model_check.hpp"

#include "cli/exit_code.hpp"
#include "cli/input_check.hpp"

#include "digest/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace weightfs::cli {

namespace {

void check(const ModelSetting& model) {
  try {
    check_name_argument(model.name);
    check_source_argument(model.source);
    if (!model.expect.empty() && !Digest::parse(model.expect)) {
      throw UsageError("\"expect\" must be the id of a snapshot, 64 hexadecimal digits");
    }
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: model {}: {}", model.origin, model.name, error.what()));
  }
}

}  // namespace

void check_models(const std::vector<ModelSetting>& models) {
  for (const ModelSetting& model : models) check(model);
  for (const ModelSetting& model : models) {
    for (std::size_t slash = model.name.find('/'); slash != std::string::npos;
         slash = model.name.find('/', slash + 1)) {
      const std::string outer = model.name.substr(0, slash);
      if (std::ranges::find(models, outer, &ModelSetting::name) == models.end()) continue;
      throw UsageError(fmt::format("{}: the model {} lies inside the model {}", model.origin,
                                   model.name, outer));
    }
  }
}

}  // namespace weightfs::cli
