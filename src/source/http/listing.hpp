// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/url.hpp"
#include "snapshot/file.hpp"
#include "source/web.hpp"

#include <stop_token>
#include <string_view>
#include <vector>

namespace weightfs::source {

/// The files of a directory, and which document described them.
struct Listing {
  std::string document;
  std::vector<snapshot::File> files;
};

/// The URL of a file in a directory: `path`'s segments percent-encoded behind the directory's own.
[[nodiscard]] net::Url url_of(const net::Url& directory, std::string_view path);

/// The files below `directory` (a URL that ends with '/'): what `weightfs.json` there says, else
/// what `SHA256SUMS` says, with sizes and times asked for file by file. Error kNotFound where
/// neither exists.
[[nodiscard]] Listing list_directory(const Web& web, const net::Url& directory,
                                     const std::stop_token& stop);

/// The name that the one file at `url` has in its snapshot: the last segment of the path, decoded.
/// Error(kInvalid) where it is no file name.
[[nodiscard]] std::string file_name_of(const net::Url& url);

}  // namespace weightfs::source
