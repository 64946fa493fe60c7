// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/model.hpp"

#include "base/error.hpp"
#include "snapshot/file.hpp"

#include <algorithm>

namespace weightfs::catalog {

Origin Model::origin(const snapshot::Snapshot& revision) const {
  const auto known = origins.find(revision.key());
  return known == origins.end() ? Origin{revision.source(), revision.revision()} : known->second;
}

Model Model::at(std::int64_t now) const {
  Model model = *this;
  if (!pinned(now)) model.pin.reset();
  return model;
}

void check_name(std::string_view name) {
  snapshot::check_path(name);
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view component = name.substr(begin, end - begin);
    if (component.starts_with('.') || component.find('@') != std::string_view::npos) {
      throw Error(Errc::kInvalid, "the name " + std::string(name) +
                                      " has a component that begins with '.' or contains '@'");
    }
    begin = end + 1;
  }
}

}  // namespace weightfs::catalog
