// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/model_changes.hpp"

#include "base/error.hpp"
#include "snapshot/pinned_reference.hpp"

#include <algorithm>

namespace weightfs::cli {

namespace {

using Kind = ModelChange::Kind;

/// As the catalog has it. One that is no source is told of when it is added.
std::string normal(const std::string& source) {
  try {
    return snapshot::PinnedReference::parse(source).text();
  } catch (const Error&) {
    return source;
  }
}

/// What is to be done to a model that is there.
void compare(const catalog::Model& model, const ModelSetting& setting,
             std::vector<ModelChange>& changes) {
  if (!setting.declared) return;
  const auto add = [&](Kind kind, const std::string& source = {}) {
    changes.push_back({.kind = kind, .name = model.name, .source = source});
  };
  if (!model.declared) add(Kind::kAdopt);
  const std::string source = normal(setting.source);
  const bool moves = model.source != source;
  if (moves) add(Kind::kResource, source);
  if (setting.pin && !model.pin) add(Kind::kPin);
  if (!setting.pin && model.pin && model.pin->reason == kDeclaredPin) add(Kind::kUnpin);
  if (setting.confirm && (moves || (model.confirmed && model.confirmed != model.current))) {
    add(Kind::kConfirm);
  }
}

}  // namespace

std::string_view word(Kind kind) noexcept {
  switch (kind) {
    case Kind::kAdd:
      return "add";
    case Kind::kAdopt:
      return "adopt";
    case Kind::kResource:
      return "change source";
    case Kind::kRemove:
      return "remove";
    case Kind::kPin:
      return "pin";
    case Kind::kUnpin:
      return "unpin";
    case Kind::kConfirm:
      return "confirm";
  }
  return "";
}

std::vector<ModelChange> changes(const std::vector<catalog::Model>& there,
                                 const std::vector<ModelSetting>& declared) {
  std::vector<ModelChange> all;
  for (const catalog::Model& model : there) {
    if (!model.declared) continue;
    const auto setting = std::ranges::find(declared, model.name, &ModelSetting::name);
    if (setting == declared.end()) all.push_back({.kind = Kind::kRemove, .name = model.name});
  }
  for (const ModelSetting& setting : declared) {
    const auto model = std::ranges::find(there, setting.name, &catalog::Model::name);
    if (model != there.end()) {
      compare(*model, setting, all);
      continue;
    }
    all.push_back({.kind = Kind::kAdd, .name = setting.name, .source = setting.source});
    if (setting.declared && setting.pin) all.push_back({.kind = Kind::kPin, .name = setting.name});
  }
  return all;
}

}  // namespace weightfs::cli
