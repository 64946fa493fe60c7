// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/hub_cache.hpp"

#include "base/error.hpp"
#include "vfs/hub_folders.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace weightfs::vfs {

namespace {

using snapshot::SnapshotPtr;

// At the top.
constexpr const char* kLocks = ".locks";
constexpr const char* kTag = "CACHEDIR.TAG";
constexpr const char* kVersion = "version.txt";
// In a repository.
constexpr const char* kAbsent = ".no_exist";
constexpr const char* kBlobs = "blobs";
constexpr const char* kRefs = "refs";
constexpr const char* kSnapshots = "snapshots";
constexpr const char* kTrees = "trees";
constexpr std::string_view kTreeEnd = ".json";
// Texts that have no name of their own.
constexpr std::string_view kCommit = "commit ";  // and then it
constexpr const char* kTree = "tree";

// The signature is what tools go by (https://bford.info/cachedir/).
constexpr const char* kTagText =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This directory shows what weightfs has of the Hub: whoever makes backups can leave it "
    "out.\n";

/// A path of the layout, in parts: "models--org--name/refs/refs/pr" is a folder, what in it, and
/// the rest.
struct Split {
  explicit Split(std::string_view path) {
    folder = cut(path);
    what = cut(path);
    rest = path;
  }
  std::string_view folder;
  std::string_view what;
  std::string_view rest;

 private:
  static std::string_view cut(std::string_view& path) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view first = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    return first;
  }
};

std::string join(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

HubCache::Blob blob_of(const HubRevision& revision, std::uint32_t file) {
  return {.view = revision.view, .snapshot = revision.snapshot, .file = file};
}

/// What refs/ has at this place: the next part of each reference that goes on below it.
std::set<std::string> refs_below(const HubFolder& folder, std::string_view place) {
  std::set<std::string> names;
  const std::string prefix = place.empty() ? "" : std::string(place) + "/";
  for (const auto& [name, commit] : folder.refs()) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(name).substr(prefix.size());
    names.emplace(rest.substr(0, rest.find('/')));
  }
  return names;
}

/// What .no_exist/ has for this commit.
std::vector<std::string> absent_from(const HubFolder& folder, std::string_view commit) {
  const HubRevision* revision = folder.revision(commit);
  return revision == nullptr ? std::vector<std::string>() : absent_files(*revision->snapshot);
}

/// Names in a directory that is not of blobs.
std::vector<std::string> names_in(const HubFolders& folders, std::string_view path) {
  const Split at(path);
  std::vector<std::string> names;
  if (at.folder.empty() || path == kLocks) {
    if (at.folder.empty()) names = {kLocks, kTag};
    for (const auto& [name, folder] : folders.all()) names.push_back(name);
    if (at.folder.empty()) names.emplace_back(kVersion);
    return names;
  }
  const HubFolder* folder = folders.find(at.folder);
  if (folder == nullptr) return names;
  if (at.what.empty()) return {kAbsent, kBlobs, kRefs, kSnapshots, kTrees};
  if (at.what == kRefs) {
    const std::set<std::string> refs = refs_below(*folder, at.rest);
    return {refs.begin(), refs.end()};
  }
  if (at.what == kAbsent && !at.rest.empty()) return absent_from(*folder, at.rest);
  names = folder->commits();
  if (at.what == kTrees) {
    for (std::string& name : names) name += kTreeEnd;
  }
  return names;
}

using Found = std::optional<HubCache::Entry>;

Found directory_if(bool exists, std::string path) {
  return exists ? Found(HubCache::Directory{std::move(path)}) : std::nullopt;
}

Found find_ref(const HubFolder& folder, const std::string& ref, std::string path) {
  const auto found = folder.refs().find(ref);
  if (found == folder.refs().end()) {
    return directory_if(!refs_below(folder, ref).empty(), std::move(path));
  }
  return HubCache::Text{std::string(kCommit) + found->second, nullptr};
}

Found find_tree(const HubFolder& folder, std::string_view name) {
  if (!name.ends_with(kTreeEnd)) return std::nullopt;
  name.remove_suffix(kTreeEnd.size());
  const HubRevision* revision = folder.revision(name);
  return revision == nullptr ? std::nullopt : Found(HubCache::Text{kTree, revision->snapshot});
}

Found find_in_folder(const HubFolder& folder, const Split& at, const std::string& name,
                     const std::string& path) {
  if (at.what.empty()) {
    constexpr std::array kParts{kAbsent, kBlobs, kRefs, kSnapshots, kTrees};
    return directory_if(std::ranges::find(kParts, name) != kParts.end(), path);
  }
  if (at.what == kRefs) return find_ref(folder, join(std::string(at.rest), name), path);
  if (at.what == kAbsent && !at.rest.empty()) {
    if (!std::ranges::binary_search(absent_from(folder, at.rest), name)) return std::nullopt;
    return HubCache::Text{kAbsent, nullptr};
  }
  if (!at.rest.empty()) return std::nullopt;
  if (at.what == kTrees) return find_tree(folder, name);
  if (at.what == kBlobs) {
    const auto blob = folder.blob(name);
    return blob ? Found(blob_of(*blob->revision, blob->file)) : std::nullopt;
  }
  const HubRevision* revision = folder.revision(name);
  if (revision == nullptr) return std::nullopt;
  if (at.what == kAbsent) return HubCache::Directory{path};
  return HubCache::Links{path, revision->snapshot};
}

Found find_in(const HubFolders& folders, const std::string& directory, const std::string& name) {
  const std::string path = join(directory, name);
  if (directory.empty()) {
    if (name == kTag || name == kVersion) return HubCache::Text{name, nullptr};
    return directory_if(name == kLocks || folders.find(name) != nullptr, path);
  }
  if (directory == kLocks) return directory_if(folders.find(name) != nullptr, path);
  const Split at(directory);
  const HubFolder* folder = folders.find(at.folder);
  return folder == nullptr ? std::nullopt : find_in_folder(*folder, at, name, path);
}

}  // namespace

HubCache::HubCache(const catalog::Catalog& catalog) : catalog_(catalog), files_(catalog) {
}

HubCache::~HubCache() = default;

std::optional<HubCache::Entry> HubCache::find(const std::string& directory,
                                              const std::string& name) {
  return find_in(*folders(), directory, name);
}

void HubCache::list(const std::string& directory, std::uint64_t position, const Visit& visit) {
  const FoldersPtr folders = this->folders();
  const Split at(directory);
  if (const HubFolder* folder = folders->find(at.folder); folder && at.what == kBlobs) {
    // The only directory that may be large, and the kernel comes back for every few kilobytes.
    for (; position < folder->blobs().size(); ++position) {
      const HubFolder::Blob& blob = folder->blobs()[position];
      if (!visit(blob.etag(), blob_of(*blob.revision, blob.file), position)) return;
    }
    return;
  }
  const std::vector<std::string> names = names_in(*folders, directory);
  for (; position < names.size(); ++position) {
    auto entry = find_in(*folders, directory, names[position]);
    if (entry && !visit(names[position], *std::move(entry), position)) return;
  }
}

std::optional<HubCache::Blob> HubCache::target(const Links& links, std::uint32_t file) {
  const FoldersPtr folders = this->folders();
  const HubFolder* folder = folders->find(Split(links.path).folder);
  if (folder == nullptr) return std::nullopt;
  const auto blob = folder->blob(files_.of(*links.snapshot)->etag(file));
  return blob ? std::optional(blob_of(*blob->revision, blob->file)) : std::nullopt;
}

std::string HubCache::text(const Text& text) {
  if (text.which == kAbsent) return "";
  if (text.which == kTag) return kTagText;
  if (text.which == kVersion) return "1";
  if (text.which.starts_with(kCommit)) return text.which.substr(kCommit.size());
  if (text.snapshot && text.which == kTree) {
    const auto files = files_.of(*text.snapshot);
    if (files->complete()) return tree_text(*text.snapshot, *files);
  }
  throw Error(Errc::kChanged, text.which + " is no text of the Hub's cache");
}

std::uint64_t HubCache::size(const Text& text) {
  const bool is_tree = text.snapshot && text.which == kTree;
  return is_tree ? files_.of(*text.snapshot)->tree_size() : this->text(text).size();
}

std::string HubCache::link(const snapshot::Snapshot& snapshot, std::uint32_t file) {
  return link_target(snapshot.files().at(file).path, files_.of(snapshot)->etag(file));
}

// The number is read first: what changes meanwhile makes another one of it, and is found next time.
HubCache::FoldersPtr HubCache::folders() {
  const std::uint64_t changes = catalog_.changes();
  const auto latest = known_.with(
      [&](const Known& known) { return known.changes == changes ? known.folders : nullptr; });
  if (latest) return latest;
  auto made = std::make_shared<const HubFolders>(catalog_, files_);
  known_.with([&](Known& known) { known = {changes, made}; });
  return made;
}

}  // namespace weightfs::vfs
