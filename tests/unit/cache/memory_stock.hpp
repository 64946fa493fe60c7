// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cache/stock.hpp"

#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

namespace weightfs::cache {

/// A stock on a disk that is only told of: who fetches and who reads is said from outside. A value;
/// two that are told the same are equal.
class MemoryStock final : public Stock {
 public:
  explicit MemoryStock(std::uint64_t disk) : disk_(disk) {}

  void put(const Digest& content, std::uint64_t size, Presence presence) {
    files_[content] = {.size = size, .presence = presence};
  }
  /// A fill of it is over, and has left this.
  void end_fill(const Digest& content, Presence presence) {
    if (presence == Presence::kNone) {
      files_.erase(content);
    } else {
      files_.at(content).presence = presence;
    }
  }
  /// Somebody reads what is complete; let_go() must follow. What is removed meanwhile takes its
  /// space until then.
  void hold(const Digest& content) { ++files_.at(content).readers; }
  void let_go(const Digest& content) {
    if (const auto found = removed_.find(content); found != removed_.end()) {
      if (--found->second.readers == 0) removed_.erase(found);
    } else {
      --files_.at(content).readers;
    }
  }
  /// Whether it was removed while somebody reads it.
  [[nodiscard]] bool lingers(const Digest& content) const { return removed_.contains(content); }
  void set_others(std::uint64_t bytes) { others_ = bytes; }

  [[nodiscard]] Presence presence(const Digest& content) const {
    const auto found = files_.find(content);
    return found == files_.end() ? Presence::kNone : found->second.presence;
  }
  [[nodiscard]] bool read(const Digest& content) const {
    const auto found = files_.find(content);
    return found != files_.end() && found->second.readers > 0;
  }
  [[nodiscard]] std::vector<Digest> with(Presence presence) const {
    std::vector<Digest> found;
    for (const auto& [content, file] : files_) {
      if (file.presence == presence) found.push_back(content);
    }
    return found;
  }
  [[nodiscard]] store::StoreUsage usage() const {
    store::StoreUsage usage{.capacity = disk_};
    for (const auto& [content, file] : files_) {
      (file.presence == Presence::kComplete ? usage.bytes : usage.partial_bytes) += file.size;
    }
    for (const auto& [content, file] : removed_) usage.evicted_open_bytes += file.size;
    const std::uint64_t taken = used(usage) + others_;
    usage.free = disk_ > taken ? disk_ - taken : 0;
    return usage;
  }
  [[nodiscard]] static std::uint64_t used(const store::StoreUsage& usage) {
    return usage.bytes + usage.partial_bytes + usage.evicted_open_bytes;
  }
  std::uint64_t remove(const Digest& content) {
    const auto found = files_.find(content);
    if (found == files_.end() || found->second.presence == Presence::kFilling) return 0;
    const File file = found->second;
    files_.erase(found);
    gone.push_back(content);
    if (file.presence != Presence::kComplete) return 0;
    if (file.readers > 0) removed_[content] = file;
    return file.size;
  }

  [[nodiscard]] Presence presence(const fetch::Target& file) const override {
    return presence(file.key());
  }
  [[nodiscard]] bool in_use(const fetch::Target& file) const override { return read(file.key()); }
  [[nodiscard]] bool readable() const override { return true; }
  [[nodiscard]] std::vector<store::VolumeStatus> volumes() const override {
    return {{.directory = "memory", .state = store::VolumeState::kUsable, .usage = usage()}};
  }
  [[nodiscard]] bool set_aside(const fetch::Target& /*file*/) const override { return false; }
  std::uint64_t remove(const fetch::Target& file) override { return remove(file.key()); }
  std::uint64_t remove_but(const std::unordered_set<Digest>& known) override {
    std::uint64_t bytes = 0;
    for (const Digest& content : with(Presence::kComplete)) {
      if (!known.contains(content)) bytes += remove(content);
    }
    return bytes;
  }

  std::vector<Digest> gone;  ///< what was removed, in this order

  bool operator==(const MemoryStock& other) const {
    return files_ == other.files_ && removed_ == other.removed_ && gone == other.gone;
  }

 private:
  struct File {
    std::uint64_t size = 0;
    Presence presence = Presence::kNone;
    int readers = 0;
    bool operator==(const File&) const = default;
  };
  std::uint64_t disk_;
  std::uint64_t others_ = 0;
  std::map<Digest, File> files_;
  std::map<Digest, File> removed_;  ///< and still read
};

}  // namespace weightfs::cache
