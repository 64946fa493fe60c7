// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::snapshot {

/// The two JSON documents that hold a list of files (FORMAT.md): what a person publishes beside the
/// files, and what we keep of a resolved snapshot.
enum class Dialect { kManifest, kState };

/// One element of "files", checked.
struct FileEntry {
  File file;
  /// kState: sha256 was learned after the snapshot was resolved, so the key goes by the validator.
  bool learned = false;
};

struct FileListDocument {
  // kState only.
  std::optional<std::uint64_t> version;
  std::optional<std::string> key;
  std::string source;
  std::string revision;

  std::vector<FileEntry> files;
};

/// Parses in one pass without building a tree, so that hostile input takes no more memory than the
/// entries that it really holds. Members that the dialect does not know are skipped; one that it
/// knows may appear once. Error(kInvalid) names the entry, or the byte offset, and what is wrong.
[[nodiscard]] FileListDocument parse_file_list(std::string_view json, Dialect dialect);

/// One element of "files", without a line break. Members with their default value are left out.
[[nodiscard]] std::string write_file_entry(const FileEntry& entry);

/// `"name":"value"`, or `"name_base64":"..."` for bytes that are not UTF-8.
[[nodiscard]] std::string bytes_member(std::string_view name, std::string_view bytes);

}  // namespace weightfs::snapshot
