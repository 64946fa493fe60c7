// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/volume_health.hpp"

#include "base/fd.hpp"

#include <fcntl.h>
#include <algorithm>
#include <utility>

namespace weightfs::store {

namespace {

/// Index, maps and parts of a few files, bytes.
constexpr std::uint64_t kLeastRoom = 1 << 20;

bool is_of_the_disk(Errc code) noexcept {
  return code == Errc::kIo || code == Errc::kPermission || code == Errc::kNotFound;
}

/// Whether this process can open no file at all at the moment: then it is busy, not the disk bad.
bool out_of_descriptors() noexcept {
  return !Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

VolumeHealth::VolumeHealth(std::filesystem::path directory, Log log)
    : directory_(std::move(directory)), log_(std::move(log)) {
}

void VolumeHealth::write_failed(const Error& error, std::uint64_t wanted) {
  if (error.code() == Errc::kNoSpace) {
    const bool before = trouble_.with([&](Trouble& trouble) {
      trouble.wanted = std::max(wanted, kLeastRoom);
      if (full_.exchange(true)) return true;
      trouble.full = error.what();
      return false;
    });
    if (!before) log_.warning("the store {} is full: {}", directory_.string(), error.what());
  } else if (is_of_the_disk(error.code()) && !out_of_descriptors()) {
    const bool before = trouble_.with([&](Trouble& trouble) {
      if (failed_.exchange(true)) return true;
      trouble.failure = error.what();
      return false;
    });
    if (!before) log_.error("the store {} is set aside: {}", directory_.string(), error.what());
  }
}

void VolumeHealth::found_full() {
  if (!full_) write_failed(Error(Errc::kNoSpace, "no space is left on its disk"));
}

void VolumeHealth::found_room(std::uint64_t free) {
  if (!full_) return;
  const bool changed = trouble_.with([&](Trouble& trouble) {
    if (free <= trouble.wanted || !full_.exchange(false)) return false;
    trouble.full.clear();
    return true;
  });
  if (changed) log_.info("the store {} has room again", directory_.string());
}

void VolumeHealth::recovered() {
  const bool changed = trouble_.with([&](Trouble& trouble) {
    trouble.failure.clear();
    return failed_.exchange(false);
  });
  if (changed) log_.info("the store {} is used again", directory_.string());
}

std::string VolumeHealth::trouble() const {
  return trouble_.with([](const Trouble& trouble) {
    return trouble.failure.empty() ? trouble.full : trouble.failure;
  });
}

}  // namespace weightfs::store
