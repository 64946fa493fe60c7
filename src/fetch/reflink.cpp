// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/reflink.hpp"

#include "base/error.hpp"

#include <optional>

namespace weightfs::fetch {

namespace {

std::optional<Fd> open_original(const Target& target) {
  try {
    return target.source->open_local(target.file());
  } catch (const Error&) {
    return std::nullopt;  // the ranged reads will meet the same error, and judge it
  }
}

}  // namespace

bool reflink(const Target& target, SharedPartial& partial, const std::function<bool()>& go_on) {
  const auto original = open_original(target);
  if (!original || !go_on()) return false;
  const auto use = partial.use();
  if (!use || !(*use)->clone_from(*original)) return false;
  // It was the right file before it was cloned. Was it still the right one afterwards?
  if (!target.source->open_local(target.file())) {
    throw Error(Errc::kChanged, target.file().path + " changed while it was cloned");
  }
  return true;
}

}  // namespace weightfs::fetch
