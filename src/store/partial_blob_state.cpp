// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/partial_blob_state.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/filesystem.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <system_error>

namespace weightfs::store {

PartialBlob::State::State(Volume::State& owner, const PartialKey& blob_key, std::uint64_t blob_size)
    : volume(owner),
      key(blob_key),
      size(blob_size),
      folder(owner.layout().partial(blob_key)),
      claim(owner.partials().claim(blob_key)) {
  if (resume()) return;
  try {
    create();
  } catch (...) {
    remove_files();
    throw;
  }
}

bool PartialBlob::State::resume() {
  map = BlockMap::load(
      {.path = folder / "map", .key = key, .size = size, .boot_id = volume.boot_id()});
  if (!map) return false;
  const std::filesystem::path path = folder / "data";
  // A commit that was interrupted may have left it read-only.
  ::chmod(path.c_str(), 0600);
  try {
    data = open_file(path, O_RDWR);
  } catch (const Error& error) {
    if (error.code() != Errc::kNotFound) throw;
    return false;
  }
  if (identity_of(data).size != map->size()) return false;
  claim.keep(map->size());
  if (map->size() != size) {
    throw Error(Errc::kInvalid, fmt::format("the partial blob {} has {} bytes, not {}", key.hex(),
                                            map->size(), size));
  }
  return true;
}

void PartialBlob::State::create() {
  map.reset();
  data.reset();
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (::mkdir(folder.c_str(), 0700) != 0) throw_errno(errno, "create " + folder.string());
  data = open_file(folder / "data", O_RDWR | O_CREAT | O_EXCL, 0600);
  preallocate();
  // Last: a folder without a map is no partial blob, and is removed.
  map = BlockMap::create(
      {.path = folder / "map", .key = key, .size = size, .boot_id = volume.boot_id()});
  claim.keep(size);
}

void PartialBlob::State::preallocate() const {
  if (size == 0) return;
  const auto length = static_cast<off_t>(size);
  int result = 0;
  do {
    result = ::fallocate(data.value(), 0, 0, length);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return;
  if (errno != EOPNOTSUPP && errno != ENOSYS) {
    throw_errno(errno, fmt::format("allocate {} bytes for {}", size, folder.string()));
  }
  // No reservation to be had: at least refuse what cannot fit now. The map, not the holes, says
  // what is there.
  if (space_of(folder).free < size) {
    throw_errno(ENOSPC, fmt::format("allocate {} bytes for {}", size, folder.string()));
  }
  if (::ftruncate(data.value(), length) != 0) throw_errno(errno, "extend " + folder.string());
}

void PartialBlob::State::remove_files() noexcept {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (!error) {
    claim.forget();
  } else {
    volume.log().warning("{} could not be removed: {}", folder.string(), error.message());
  }
}

}  // namespace weightfs::store
