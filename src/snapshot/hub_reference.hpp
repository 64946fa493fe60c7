// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/reference.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weightfs::snapshot {

enum class HubKind { kModel, kDataset, kSpace };

/// A repository of the Hugging Face Hub, and which revision of it:
///   hf://org/name                        its branch main
///   hf://org/name@refs/pr/1              a branch, a tag, a commit, a pull request
///   hf://datasets/org/name, hf://spaces/org/name
///   hf://org/name?endpoint=https://host  on another Hub than the one that the daemon is told of
/// A value.
struct HubReference {
  HubKind kind = HubKind::kModel;
  std::string repository;  ///< "org/name", or "name" of one that has no namespace
  std::string revision = "main";
  std::string endpoint;  ///< http(s)://host[:port][/path], without '/' at its end; empty: the usual

  /// Error(kInvalid) for names that no repository can have.
  [[nodiscard]] static HubReference parse(const Reference& reference);
  /// The same from what stands behind "hf://".
  [[nodiscard]] static HubReference parse_locator(std::string_view locator);

  /// What parse() reads back as the same.
  [[nodiscard]] std::string text() const;
  /// The name of its directory in the Hub's own cache: "models--org--name".
  [[nodiscard]] std::string cache_folder() const;
  /// Whether the revision is a commit (40 hexadecimal digits), which always means the same.
  [[nodiscard]] bool is_commit() const noexcept;

  bool operator==(const HubReference&) const = default;
};

/// The URL of a Hub as endpoints are written: http(s)://host[:port][/path], without '/' at its end.
/// Error(kInvalid) for one that is no http(s) URL, or has a query.
[[nodiscard]] std::string hub_endpoint(std::string_view url);

/// Which repository of a Hub a source shows, whole or by patterns, the first one where it names
/// several; nullopt for one that shows something else, and for text that is no source at all. Pure.
[[nodiscard]] std::optional<HubReference> hub_reference_of(std::string_view source);

/// 40 lower-case hexadecimal digits: a commit or the id of a git object.
[[nodiscard]] bool is_git_id(std::string_view text) noexcept;

/// What the Hub calls one version of one file. Stands in File::validator. A value.
struct HubVersion {
  std::string commit;  ///< in which the file was found
  std::string blob;    ///< git's id of the content; of the pointer of a file in LFS

  /// The inverse of text(). Error(kInvalid).
  [[nodiscard]] static HubVersion parse(std::string_view text);
  [[nodiscard]] std::string text() const { return commit + " " + blob; }
};

}  // namespace weightfs::snapshot
