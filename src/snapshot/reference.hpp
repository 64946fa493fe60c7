// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>
#include <string_view>

namespace weightfs::snapshot {

enum class Scheme { kFile, kHttp, kHttps, kHf, kOci, kS3, kRelease };

/// What a person writes for a source: `file:///data/llama`, `https://host/models/llama/`,
/// `hf://org/name@main`, or several of them as `release://...` (snapshot::Release). A value;
/// parsing touches neither disk nor network.
class Reference {
 public:
  /// Error(kInvalid) with what is wrong and an example of what is right. For http(s) the URL may
  /// carry no user:password (secrets come from files or the environment) and no fragment.
  [[nodiscard]] static Reference parse(std::string_view text);

  [[nodiscard]] Scheme scheme() const noexcept { return scheme_; }
  /// Without the scheme and "://": an absolute path for file, host and path for the others
  /// (of a release, its parts).
  [[nodiscard]] const std::string& locator() const noexcept { return locator_; }
  /// What a person wrote, normalised (file paths without trailing '/').
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  bool operator==(const Reference&) const = default;

 private:
  Scheme scheme_ = Scheme::kFile;
  std::string locator_;
  std::string text_;
};

/// What of a source, valid or not, anybody may see: a user:password is left out, and so is a query,
/// which may hold a signature; "..." stands for each. A file's path stays as it is. Pure.
[[nodiscard]] std::string shown_source(std::string_view text);

}  // namespace weightfs::snapshot
