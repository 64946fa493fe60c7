// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/target.hpp"

#include <string>

namespace weightfs::fetch {

store::PartialKey Target::key() const {
  return file().sha256 ? *file().sha256 : unlearned_key();
}

store::PartialKey Target::unlearned_key() const {
  const snapshot::File& wanted = file();
  // No reference and no path contains NUL, so different triples are different texts.
  std::string text = snapshot->source();
  text += '\0';
  text += wanted.path;
  text += '\0';
  text += wanted.validator;
  return Digest::of(text);
}

}  // namespace weightfs::fetch
