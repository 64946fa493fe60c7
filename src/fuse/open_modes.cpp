// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fuse/open_modes.hpp"

#include "base/error.hpp"

#include <utility>

namespace weightfs::fuse {

using keeper::SessionMemory;

OpenModes::OpenModes(BackingRegistry& registry, SessionMemory& memory, Log log)
    : registry_(registry), memory_(memory), log_(std::move(log)) {
  state_.with([](State& state) { state.status = {false, "the kernel has not answered yet"}; });
}

void OpenModes::probe(const Fd& probe) {
  if (state_.with([](const State& state) { return state.disabled; })) return;
  PassthroughStatus status;
  try {
    registry_.close_backing(registry_.open_backing(probe));
    status.active = true;
  } catch (const Error& error) {
    status.reason = error.what();
  }
  state_.with([&](State& state) { state.status = std::move(status); });
}

void OpenModes::disable(const std::string& reason) {
  state_.with([&](State& state) { state = {{false, reason}, true}; });
}

PassthroughStatus OpenModes::status() const {
  return state_.with([](const State& state) { return state.status; });
}

std::optional<std::int32_t> OpenModes::open(vfs::NodeId node,
                                            const std::optional<store::Blob>& blob) {
  return state_.with([&](State& state) -> std::optional<std::int32_t> {
    if (const auto open = memory_.backing(node.value())) {
      memory_.count_open(node.value());
      if (open->backing_id == SessionMemory::kCached) return std::nullopt;
      return open->backing_id;
    }
    std::int32_t id = SessionMemory::kCached;
    if (state.status.active && blob && node.complete()) {
      try {
        id = registry_.open_backing(*blob->fd);
      } catch (const Error& error) {
        log_.warning("{} is served by the daemon: {}", blob->digest.short_hex(), error.what());
      }
    }
    try {
      memory_.add_backing(node.value(), id);
    } catch (const Error&) {
      if (id != SessionMemory::kCached) registry_.close_backing(id);
      throw;
    }
    if (id == SessionMemory::kCached) return std::nullopt;
    return id;
  });
}

void OpenModes::release(vfs::NodeId node) {
  state_.with([&](State&) {
    const auto open = memory_.backing(node.value());
    if (!open || memory_.count_release(node.value()) > 0) return;
    if (open->backing_id == SessionMemory::kCached) return;
    try {
      registry_.close_backing(open->backing_id);
    } catch (const Error& error) {
      log_.warning("cannot close backing id {}: {}", open->backing_id, error.what());
    }
  });
}

}  // namespace weightfs::fuse
