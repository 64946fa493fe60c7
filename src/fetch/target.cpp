// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/target.hpp"

#include "base/error.hpp"

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

void check_size(const Target& target, std::uint64_t found) {
  const snapshot::File& file = target.file();
  if (file.size == found) return;
  throw Error(Errc::kInvalid, file.path + ": the listing gives " + std::to_string(file.size) +
                                  " bytes to a digest whose content has " + std::to_string(found));
}

}  // namespace weightfs::fetch
