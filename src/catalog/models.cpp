// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/models.hpp"

#include "base/error.hpp"

namespace weightfs::catalog {

bool is_below(std::string_view path, std::string_view name) {
  return path.empty() ||
         (name.size() > path.size() + 1 && name.starts_with(path) && name[path.size()] == '/');
}

Models::const_iterator first_below(const Models& models, std::string_view path) {
  return path.empty() ? models.begin() : models.lower_bound(std::string(path) + "/");
}

void check_conflicts(const Models& models, const std::string& name) {
  const auto below = first_below(models, name);
  if (below != models.end() && is_below(name, below->first)) {
    throw Error(Errc::kInvalid,
                "the name " + name + " is a directory: " + below->first + " is below it");
  }
  for (std::size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    if (models.contains(name.substr(0, slash))) {
      throw Error(Errc::kInvalid,
                  "the name " + name + " lies inside the model " + name.substr(0, slash));
    }
  }
}

bool names_revision(const Model& model, const snapshot::Snapshot& revision, std::string_view text) {
  constexpr std::size_t kMinPrefix = 8;
  const auto matches = [text](const std::string& word) {
    return word == text || (text.size() >= kMinPrefix && word.starts_with(text));
  };
  return matches(model.origin(revision).revision) || matches(revision.key().hex()) ||
         (revision.id() && matches(revision.id()->hex()));
}

Model& require(Models& models, const std::string& name) {
  const auto found = models.find(name);
  if (found == models.end()) throw Error(Errc::kNotFound, "no model has the name " + name);
  return found->second;
}

}  // namespace weightfs::catalog
