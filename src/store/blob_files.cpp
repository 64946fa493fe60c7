// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/blob_files.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/unreadable.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace weightfs::store {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartsSuffix = ".parts";

void rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw_errno(errno, "rename " + from.string() + " to " + to.string());
  }
}

/// Names of a folder, sorted. One that is gone or unreadable has none.
std::vector<std::string> names_of(const fs::path& folder, const Log& log) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error && is_unreadable(error.value())) {
    // All of it, because what a cut list leaves out would seem not to be there.
    log.error("{} cannot be read: {}", folder.string(), error.message());
    return {};
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw_errno(error.value(), "list " + folder.string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::optional<BlobFiles::Opened> BlobFiles::open(const Digest& digest) const {
  const fs::path path = layout_.blob(digest);
  // O_NONBLOCK: nobody waits for the other end of what somebody else has put there.
  Opened opened{.fd = Fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)),
                .identity = {}};
  if (!opened.fd) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) throw Error(Errc::kInvalid, path.string() + " is a symbolic link");
    if (is_unreadable(errno)) throw Error(Errc::kCorrupt, path.string() + " cannot be read");
    throw_errno(errno, "open " + path.string());
  }
  struct stat status = {};
  if (::fstat(opened.fd.value(), &status) != 0) throw_errno(errno, "stat " + path.string());
  if (!S_ISREG(status.st_mode)) {
    throw Error(Errc::kInvalid, path.string() + " is not a regular file");
  }
  opened.identity = identity_of(opened.fd);
  return opened;
}

void BlobFiles::publish(const Digest& digest, const fs::path& data, const fs::path& parts) const {
  const fs::path folder = layout_.blob_folder(digest);
  if (::mkdir(folder.c_str(), 0700) == 0) {
    sync_directory(folder.parent_path());
  } else if (errno != EEXIST) {
    throw_errno(errno, "create " + folder.string());
  }
  if (parts.empty()) {
    remove_parts(digest);
  } else {
    rename_file(parts, layout_.parts(digest));
  }
  rename_file(data, layout_.blob(digest));
  sync_directory(folder);
}

void BlobFiles::unpublish(const Digest& digest, const fs::path& data) const noexcept {
  const fs::path blob = layout_.blob(digest);
  struct stat status{};
  if (::stat(data.c_str(), &status) != 0 && ::rename(blob.c_str(), data.c_str()) != 0) {
    ::unlink(blob.c_str());
  }
  ::unlink(layout_.parts(digest).c_str());
}

bool BlobFiles::remove(const Digest& digest) const {
  const fs::path blob = layout_.blob(digest);
  const bool removed = ::unlink(blob.c_str()) == 0;
  if (!removed && errno != ENOENT) throw_errno(errno, "remove " + blob.string());
  remove_parts(digest);
  if (removed) sync_directory(blob.parent_path());
  return removed;
}

void BlobFiles::remove_parts(const Digest& digest) const {
  const fs::path parts = layout_.parts(digest);
  if (::unlink(parts.c_str()) != 0 && errno != ENOENT)
    throw_errno(errno, "remove " + parts.string());
}

void BlobFiles::scan(const std::function<void(const Found&)>& found, const Log& log) const {
  for (const std::string& name : names_of(layout_.blobs(), log)) {
    if (name.size() == 2 && name.find_first_not_of("0123456789abcdef") == std::string::npos) {
      scan_folder(layout_.blobs() / name, found, log);
    } else {
      log.warning("{} is not ours and is left alone", (layout_.blobs() / name).string());
    }
  }
}

void BlobFiles::scan_folder(const fs::path& folder, const std::function<void(const Found&)>& found,
                            const Log& log) const {
  std::set<Digest> blobs;
  std::set<Digest> parts;
  for (const std::string& name : names_of(folder, log)) {
    const bool is_parts = name.ends_with(kPartsSuffix);
    const auto digest = digest_of_name(
        std::string_view(name).substr(0, name.size() - (is_parts ? kPartsSuffix.size() : 0)));
    if (!digest || layout_.blob_folder(*digest) != folder) {
      log.warning("{} is not ours and is left alone", (folder / name).string());
      continue;
    }
    (is_parts ? parts : blobs).insert(*digest);
  }
  for (const Digest& digest : blobs) {
    try {
      if (const auto opened = open(digest)) {
        found(
            {.digest = digest, .identity = opened->identity, .has_parts = parts.contains(digest)});
      }
    } catch (const Error& error) {
      if (error.code() != Errc::kInvalid && error.code() != Errc::kCorrupt) throw;
      log.warning("{}: {}", layout_.blob(digest).string(), error.what());
    }
  }
  for (const Digest& digest : parts) {
    if (blobs.contains(digest)) continue;
    try {
      remove_parts(digest);
    } catch (const Error& error) {
      log.warning("{}", error.what());
    }
  }
}

}  // namespace weightfs::store
