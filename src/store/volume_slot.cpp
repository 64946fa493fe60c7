// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/volume_slot.hpp"

#include <fmt/format.h>

#include <utility>

namespace weightfs::store {

VolumeSlot::VolumeSlot(VolumeOptions options, const Clock& clock, Log log)
    : options_(std::move(options)), clock_(clock), log_(std::move(log)) {
}

void VolumeSlot::open() {
  if (volume()) return;
  volume_ = Volume::open(options_, clock_, log_);
  opened_.store(volume_.get(), std::memory_order_release);
  opening_error_.with([](std::string& error) { error.clear(); });
}

void VolumeSlot::put_off(const Error& error) {
  opening_error_.with([&](std::string& text) { text = error.what(); });
  schedule_.failed(clock_.now());
}

bool VolumeSlot::probe() {
  if (usable() || !schedule_.due(clock_.now())) return false;
  try {
    open();
  } catch (const Error& error) {
    put_off(error);
    return false;
  }
  schedule_.recovered(clock_.now());
  log_.info("the store {} could be opened", directory().string());
  return true;
}

std::string VolumeSlot::error() const {
  return opening_error_.with([](const std::string& error) { return error; });
}

std::string VolumeSlot::trouble() const {
  const std::string why = error();
  if (why.empty()) return why;
  return fmt::format("the store {} could not be opened: {}", directory().string(), why);
}

VolumeStatus VolumeSlot::status() const {
  VolumeStatus status{.directory = directory(), .error = error()};
  const Volume* const opened = volume();
  if (!opened) return status;
  status.state = VolumeState::kUsable;
  status.filesystem = opened->filesystem();
  status.usage = opened->usage();
  return status;
}

}  // namespace weightfs::store
