// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/manifest.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/file_list_json.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace weightfs::snapshot {

namespace {

constexpr std::size_t kHexDigits = 2 * Digest::kSize;

void check_length(std::string_view text, std::string_view name) {
  if (text.size() <= kMaxManifestBytes) return;
  throw Error(Errc::kInvalid, fmt::format("{} has {} bytes, more than {} are not read", name,
                                          text.size(), kMaxManifestBytes));
}

/// Undoes what sha256sum does to a name when it begins the line with a backslash.
std::optional<std::string> unescaped(std::string_view name) {
  std::string bytes;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name[at] != '\\') {
      bytes += name[at];
      continue;
    }
    if (++at == name.size()) return std::nullopt;
    switch (name[at]) {
      case '\\':
        bytes += '\\';
        break;
      case 'n':
        bytes += '\n';
        break;
      case 'r':
        bytes += '\r';
        break;
      default:
        return std::nullopt;
    }
  }
  return bytes;
}

std::string_view without_dot_slash(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

/// One line: 64 hexadecimal digits, a space, ' ' (text) or '*' (binary), the name. Throws without
/// the line's number.
File parse_checksum_line(std::string_view line) {
  const bool escaped = line.starts_with('\\');
  if (escaped) line.remove_prefix(1);
  const std::optional<Digest> sha256 = Digest::parse(line.substr(0, kHexDigits));
  if (!sha256) throw Error(Errc::kInvalid, "does not begin with 64 hexadecimal digits");
  line.remove_prefix(kHexDigits);
  if (line.size() < 3 || line[0] != ' ' || (line[1] != ' ' && line[1] != '*')) {
    throw Error(Errc::kInvalid, "has no name after the digest and two separators");
  }
  line.remove_prefix(2);

  File file;
  file.sha256 = sha256;
  if (escaped) {
    std::optional<std::string> name = unescaped(line);
    if (!name) throw Error(Errc::kInvalid, "has a backslash that sha256sum would not write");
    file.path = without_dot_slash(*name);
  } else {
    file.path = without_dot_slash(line);
  }
  check_path(file.path);
  return file;
}

}  // namespace

std::vector<File> parse_manifest(std::string_view json) {
  check_length(json, kManifestName);
  std::vector<File> files;
  try {
    FileListDocument document = parse_file_list(json, Dialect::kManifest);
    files.reserve(document.files.size());
    for (FileEntry& entry : document.files) files.push_back(std::move(entry.file));
  } catch (const Error& error) {
    throw Error(Errc::kInvalid, fmt::format("{}: {}", kManifestName, error.what()));
  }
  return files;
}

std::string write_manifest(const std::vector<File>& files) {
  std::string text = "{\"files\":[";
  std::string_view separator = "\n";
  for (const File& file : files) {
    check_path(file.path);
    if (!file.sha256) {
      throw Error(Errc::kInvalid, fmt::format("{} has no sha256 to write", printable(file.path)));
    }
    FileEntry entry{.file = file};
    entry.file.validator.clear();
    text += separator;
    text += write_file_entry(entry);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

std::vector<File> parse_checksums(std::string_view text) {
  check_length(text, kChecksumsName);
  std::vector<File> files;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    // sha256sum escapes a carriage return in a name, so a bare one ends a line of DOS text.
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    try {
      if (files.size() >= kMaxFiles) {
        throw Error(Errc::kInvalid, fmt::format("more than {} files", kMaxFiles));
      }
      files.push_back(parse_checksum_line(line));
    } catch (const Error& error) {
      throw Error(Errc::kInvalid,
                  fmt::format("{}: line {}: {}", kChecksumsName, number, error.what()));
    }
  }
  return files;
}

}  // namespace weightfs::snapshot
