// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/reference.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weightfs::snapshot {

/// One part of a release: what a source has, at a place in the tree.
struct ReleasePart {
  /// Letters, digits, '.', '_', '-' and '/'. With a '/' it is the directory in which the part
  /// stands ("adapters/x"), without one the part stands at the root ("base", "tokenizer").
  std::string name;
  Reference source;
  bool overlay = false;  ///< its files take the place of others'

  /// What the paths of its files begin with in the tree: "" or "adapters/x/".
  [[nodiscard]] std::string prefix() const;
  bool operator==(const ReleasePart&) const = default;
};

/// Several sources shown as one tree: base, tokenizer, adapters. Written as a reference,
/// `release://NAME=SOURCE&NAME!=SOURCE`, where "!" makes an overlay and '%', '&' and blanks in a
/// source are written as in a URL. A value.
class Release {
 public:
  /// Error(kInvalid) for no part, a name that is not valid or is there twice, a release within a
  /// release, or what Reference::parse says of a source.
  explicit Release(std::vector<ReleasePart> parts);
  [[nodiscard]] static Release parse(std::string_view text);

  [[nodiscard]] const std::vector<ReleasePart>& parts() const noexcept { return parts_; }
  /// What parse() reads back as the same release.
  [[nodiscard]] std::string text() const;
  /// The same, of each source only what anybody may see (shown_source).
  [[nodiscard]] std::string shown() const;

 private:
  std::vector<ReleasePart> parts_;
};

inline constexpr std::string_view kReleaseScheme = "release://";

}  // namespace weightfs::snapshot
