// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/reference.hpp"
#include "snapshot/selection.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weightfs::snapshot {

/// One part of a release: what a source has, at a place in the tree.
struct ReleasePart {
  /// Letters, digits, '.', '_', '-' (not at the end) and '/'. With a '/' it is the directory in
  /// which the part stands ("adapters/x"), without one the part stands at the root ("base",
  /// "tokenizer").
  std::string name;
  /// The first, and others that have the same for when it fails. At least one.
  std::vector<Reference> sources;
  bool overlay = false;  ///< its files take the place of others'
  Selection selection;   ///< the files that are taken of it

  /// What the paths of its files begin with in the tree: "" or "adapters/x/".
  [[nodiscard]] std::string prefix() const;
  bool operator==(const ReleasePart&) const = default;
};

/// What is put together of sources: several shown as one tree (base, tokenizer, adapters), several
/// that have the same, files chosen by patterns. Written as a reference, `release://` and, with '&'
/// between them and '%', '&' and blanks written as in a URL:
///   NAME=SOURCE    a part              NAME!=SOURCE    one that is an overlay
///   NAME|=SOURCE   another source of it, tried after those before
///   NAME+=PATTERN  files of it that are wanted; NAME-=PATTERN, that are not
/// A value.
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
  /// The one part that is all of the tree; null where there is no such.
  [[nodiscard]] const ReleasePart* whole() const noexcept;

 private:
  [[nodiscard]] std::string written(std::string (*source)(const Reference&)) const;

  std::vector<ReleasePart> parts_;
};

inline constexpr std::string_view kReleaseScheme = "release://";

}  // namespace weightfs::snapshot
