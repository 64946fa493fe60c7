// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/snapshot.hpp"

#include "base/error.hpp"
#include "digest/sha256.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/file_list_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

namespace weightfs::snapshot {

namespace {

constexpr std::uint64_t kStateVersion = 1;

bool path_less(const File& left, const File& right) noexcept {
  return left.path < right.path;
}

/// Hashes the canonical lines of FORMAT.md. Byte strings carry their length, so no name can imitate
/// another line.
class TreeHasher {
 public:
  TreeHasher() { add("weightfs snapshot 1\n"); }

  void add_known(const File& file) {
    begin_line(file);
    fmt::format_to(std::back_inserter(line_), "sha256 {}\n", file.sha256->hex());
    add(line_);
  }

  void add_unknown(const File& file, std::string_view source) {
    begin_line(file);
    fmt::format_to(std::back_inserter(line_), "validator {}:{} {}:{}\n", source.size(), source,
                   file.validator.size(), file.validator);
    add(line_);
  }

  [[nodiscard]] Digest digest() const { return hasher_.digest(); }

 private:
  void begin_line(const File& file) {
    line_.clear();
    fmt::format_to(std::back_inserter(line_), "{}:{} {} {} ", file.path.size(), file.path,
                   file.size, file.executable ? 'x' : '-');
  }

  void add(std::string_view bytes) { hasher_.update(std::as_bytes(std::span(bytes))); }

  Sha256 hasher_;
  std::string line_;
};

/// Throws where two sorted paths cannot stand in one tree. Between "a" and "a/b" may sort "a-b", so
/// `prefixes` holds every earlier path that the current one begins with; the work is linear in
/// bytes.
void check_relations(const std::vector<File>& files) {
  std::vector<std::string_view> prefixes;
  for (const File& file : files) {
    const std::string_view path = file.path;
    while (!prefixes.empty() && !path.starts_with(prefixes.back())) prefixes.pop_back();
    for (const std::string_view prefix : prefixes) {
      if (prefix.size() == path.size()) {
        throw Error(Errc::kInvalid, fmt::format("the path {} appears twice", printable(path)));
      }
      if (path[prefix.size()] == '/') {
        throw Error(Errc::kInvalid, fmt::format("the path {} is a file and a directory (of {})",
                                                printable(prefix), printable(path)));
      }
    }
    prefixes.push_back(path);
  }
}

/// With its '/'; empty at the root.
std::string_view parent(std::string_view path) noexcept {
  return path.substr(0, path.rfind('/') + 1);
}

/// Sorted paths below one directory stand together: a directory that the path before is not below
/// is a new one.
void check_directories(const std::vector<File>& files) {
  std::size_t directories = 0;
  std::string_view before;
  for (const File& file : files) {
    const std::string_view path = file.path;
    for (std::string_view directory = parent(path);
         !directory.empty() && !before.starts_with(directory);
         directory = parent(directory.substr(0, directory.size() - 1))) {
      ++directories;
    }
    if (directories > kMaxDirectories) {
      throw Error(Errc::kInvalid, fmt::format("more than {} directories", kMaxDirectories));
    }
    before = path;
  }
}

void check_sizes(const std::vector<File>& files) {
  std::unordered_map<Digest, const File*> by_digest;
  for (const File& file : files) {
    if (!file.sha256) continue;
    const auto [known, added] = by_digest.try_emplace(*file.sha256, &file);
    if (added || known->second->size == file.size) continue;
    throw Error(Errc::kInvalid, fmt::format("{} and {} have the same sha256 and different sizes",
                                            printable(known->second->path), printable(file.path)));
  }
}

std::uint64_t total_size(const std::vector<File>& files) {
  std::uint64_t total = 0;
  for (const File& file : files) {
    if (file.size > kMaxFileSize) {
      throw Error(Errc::kInvalid, fmt::format("{} has {} bytes, more than a file can have",
                                              printable(file.path), file.size));
    }
    total += file.size;  // two numbers below 2^63: no overflow before the check
    if (total > kMaxFileSize)
      throw Error(Errc::kInvalid, "the sizes of all files sum to over 2^63");
  }
  return total;
}

}  // namespace

Snapshot::Snapshot(std::string source, std::string revision, std::vector<File> files)
    : source_(std::move(source)), revision_(std::move(revision)) {
  for (const File& file : files) check_path(file.path);
  std::sort(files.begin(), files.end(), path_less);
  check_relations(files);
  check_directories(files);
  check_sizes(files);
  bytes_ = total_size(files);
  learned_.resize(files.size());
  files_ = FileList(std::move(files));

  TreeHasher hasher;
  for (const File& file : files_) {
    if (file.sha256) {
      hasher.add_known(file);
    } else {
      hasher.add_unknown(file, source_);
      ++unknown_;
    }
  }
  key_ = hasher.digest();
  if (unknown_ == 0) id_ = key_;
  if (revision_.empty()) revision_ = key_.hex();
}

std::optional<Digest> Snapshot::compute_id() const {
  if (unknown_ > 0) return std::nullopt;
  TreeHasher hasher;
  for (const File& file : files_) hasher.add_known(file);
  return hasher.digest();
}

std::optional<std::size_t> Snapshot::index_of(std::string_view path) const noexcept {
  const auto at =
      std::lower_bound(files_.begin(), files_.end(), path,
                       [](const File& file, std::string_view value) { return file.path < value; });
  if (at == files_.end() || at->path != path) return std::nullopt;
  return static_cast<std::size_t>(at - files_.begin());
}

const File* Snapshot::find(std::string_view path) const noexcept {
  const auto index = index_of(path);
  return index ? &files_[*index] : nullptr;
}

Snapshot Snapshot::with_digests(std::span<const LearnedDigest> learned) const {
  Snapshot snapshot = *this;
  FileList::Editor files(files_);
  for (const LearnedDigest& each : learned) {
    if (each.file_index >= files_.size()) {
      throw Error(Errc::kInvalid,
                  fmt::format("the snapshot has no file number {}", each.file_index));
    }
    File& file = files[each.file_index];
    if (file.sha256 == each.sha256) continue;
    if (file.sha256) {
      throw Error(Errc::kCorrupt,
                  fmt::format("{} is known to have sha256 {}, not {}", printable(file.path),
                              file.sha256->hex(), each.sha256.hex()));
    }
    file.sha256 = each.sha256;
    snapshot.learned_[each.file_index] = true;
    --snapshot.unknown_;
  }
  snapshot.files_ = files.finish();
  if (!id_) snapshot.id_ = snapshot.compute_id();
  return snapshot;
}

Snapshot Snapshot::with_digest(std::size_t file_index, const Digest& sha256) const {
  const LearnedDigest learned{.file_index = file_index, .sha256 = sha256};
  return with_digests({&learned, 1});
}

std::string Snapshot::to_json() const {
  std::string text =
      fmt::format("{{\"version\":{},\"key\":\"{}\",\n{},\n{},\n\"files\":[", kStateVersion,
                  key_.hex(), bytes_member("source", source_), bytes_member("revision", revision_));
  std::string_view separator = "\n";
  for (std::size_t index = 0; index < files_.size(); ++index) {
    text += separator;
    text += write_file_entry({.file = files_[index], .learned = learned_[index]});
    separator = ",\n";
  }
  return text + "\n]}\n";
}

Snapshot Snapshot::from_json(std::string_view json) {
  FileListDocument document = parse_file_list(json, Dialect::kState);
  if (!document.version) throw Error(Errc::kInvalid, "\"version\" is missing");
  if (*document.version != kStateVersion) {
    throw Error(Errc::kUnsupported,
                fmt::format("a snapshot file of version {}; this build reads version {}",
                            *document.version, kStateVersion));
  }
  const auto key = document.key ? Digest::parse(*document.key) : std::nullopt;
  if (!key) throw Error(Errc::kInvalid, "\"key\" is missing or not 64 hexadecimal digits");

  // The key is checked as it was computed: before anything was learned.
  std::vector<File> files;
  std::vector<std::pair<std::string, Digest>> learned;
  files.reserve(document.files.size());
  for (FileEntry& entry : document.files) {
    if (entry.learned) {
      learned.emplace_back(entry.file.path, *entry.file.sha256);
      entry.file.sha256.reset();
    }
    files.push_back(std::move(entry.file));
  }
  Snapshot snapshot(std::move(document.source), std::move(document.revision), std::move(files));
  if (snapshot.key_ != *key) {
    throw Error(Errc::kCorrupt, fmt::format("a snapshot file says key {} and holds files of key {}",
                                            key->hex(), snapshot.key_.hex()));
  }
  std::vector<LearnedDigest> indexed;
  indexed.reserve(learned.size());
  for (const auto& [path, sha256] : learned) {
    indexed.push_back({.file_index = *snapshot.index_of(path), .sha256 = sha256});
  }
  return indexed.empty() ? snapshot : snapshot.with_digests(indexed);
}

}  // namespace weightfs::snapshot
