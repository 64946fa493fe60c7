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
  waiting_ = true;
}

bool VolumeSlot::probe() {
  if (usable()) return false;
  if (!waiting_) {
    schedule_.failed(clock_.now());
    waiting_ = true;
  }
  if (!schedule_.due(clock_.now())) return false;
  try {
    mend();
  } catch (const Error& error) {
    log_.debug("{}", error.what());
    if (!volume()) return put_off(error), false;
    schedule_.failed(clock_.now());
    return false;
  }
  waiting_ = false;
  schedule_.recovered(clock_.now());
  return true;
}

void VolumeSlot::mend() {
  Volume* const before = volume();
  if (!before) {
    open();
    log_.info("the store {} could be opened", directory().string());
  } else if (before->was_replaced()) {
    auto another = Volume::open(options_, clock_, log_);
    replaced_.push_back(std::exchange(volume_, std::move(another)));
    opened_.store(volume_.get(), std::memory_order_release);
    log_.info("the store {} is another one than before, and is used", directory().string());
  } else {
    before->probe();
  }
}

std::string VolumeSlot::error() const {
  const Volume* const opened = volume();
  if (opened) return opened->trouble();
  return opening_error_.with([](const std::string& error) { return error; });
}

std::string VolumeSlot::trouble() const {
  const Volume* const opened = volume();
  const std::string why = error();
  if (why.empty()) return why;
  const char* const what = !opened            ? "could not be opened"
                           : opened->usable() ? "is full"
                                              : "is set aside";
  return fmt::format("the store {} {}: {}", directory().string(), what, why);
}

VolumeStatus VolumeSlot::status() const {
  VolumeStatus status{.directory = directory()};
  if (const Volume* const opened = volume()) {
    status.usage = opened->usage();  // first: it may find that there is room again
    status.state = opened->usable() ? VolumeState::kUsable : VolumeState::kSetAside;
    status.filesystem = opened->filesystem();
  }
  status.error = error();
  return status;
}

}  // namespace weightfs::store
