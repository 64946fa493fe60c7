// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "store/probe_schedule.hpp"
#include "store/volume.hpp"
#include "store/volume_status.hpp"

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace weightfs::store {

/// One directory of a store: its volume once it could be opened, and whether it can be used.
/// Thread-safe, but for open() and probe(), which are called by one thread at a time. `clock` must
/// outlive it.
class VolumeSlot {
 public:
  VolumeSlot(VolumeOptions options, const Clock& clock, Log log);
  VolumeSlot(const VolumeSlot&) = delete;
  VolumeSlot& operator=(const VolumeSlot&) = delete;

  [[nodiscard]] const std::filesystem::path& directory() const noexcept {
    return options_.directory;
  }
  /// Null until it could be opened. Stays valid, also after another has taken its place because
  /// the disk was changed.
  [[nodiscard]] Volume* volume() const noexcept { return opened_.load(std::memory_order_acquire); }
  /// Error as of Volume::open. Nothing happens if it is open.
  void open();
  /// It is to be opened later, because of `error`.
  void put_off(const Error& error);
  /// If its time has come, tries what did not work. True if that works now.
  bool probe();

  /// Whether it can be written to.
  [[nodiscard]] bool usable() const {
    const Volume* const opened = volume();
    return opened && opened->usable();
  }
  /// What is wrong, as a sentence with the directory; empty if nothing is.
  [[nodiscard]] std::string trouble() const;
  [[nodiscard]] VolumeStatus status() const;

 private:
  const VolumeOptions options_;
  const Clock& clock_;
  const Log log_;
  void mend();

  std::unique_ptr<Volume> volume_;
  std::atomic<Volume*> opened_ = nullptr;
  [[nodiscard]] std::string error() const;

  Synchronized<std::string> opening_error_;
  ProbeSchedule schedule_;
  bool waiting_ = false;  ///< for the next probe
  std::vector<std::unique_ptr<Volume>> replaced_;
};

}  // namespace weightfs::store
