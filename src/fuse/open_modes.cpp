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

void OpenModes::postpone(const std::string& reason) {
  state_.with([&](State& state) {
    if (!state.disabled) state.status = {false, reason};
  });
}

void OpenModes::disable(const std::string& reason) {
  state_.with([&](State& state) { state = {{false, reason}, true}; });
}

PassthroughStatus OpenModes::status() const {
  return state_.with([](const State& state) { return state.status; });
}

OpenMode OpenModes::open(vfs::NodeId node, const std::optional<store::Blob>& blob,
                         std::uint64_t request) {
  return state_.with([&](State& state) -> OpenMode {
    const auto open = memory_.backing(node.value());
    std::int32_t id = open ? open->backing_id : SessionMemory::kCached;
    if (!open && state.status.active && blob && node.complete()) {
      try {
        id = registry_.open_backing(*blob->fd);
      } catch (const Error& error) {
        log_.warning("{} is served by the daemon: {}", blob->digest.short_hex(), error.what());
      }
    }
    OpenMode mode;
    try {
      mode.handle = memory_.add_open(node.value(), id, request);
    } catch (const Error&) {
      if (!open) close(id);
      throw;
    }
    if (id != SessionMemory::kCached) mode.backing_id = id;
    return mode;
  });
}

bool OpenModes::release(vfs::NodeId node, std::uint64_t handle) {
  return state_.with([&](State&) {
    const auto open = memory_.backing(node.value());
    const auto left = memory_.remove_open(node.value(), handle);
    // Killed before it is closed, the id is one that no open has: the successor closes those.
    if (left == 0) close(open->backing_id);
    return left.has_value();
  });
}

std::optional<vfs::NodeId> OpenModes::take_back(std::uint64_t request) {
  const auto open = memory_.find_open(request);
  if (!open || !release(vfs::NodeId(open->node_id), open->handle)) return std::nullopt;
  return vfs::NodeId(open->node_id);
}

void OpenModes::close(std::int32_t backing_id) {
  if (backing_id == SessionMemory::kCached) return;
  try {
    registry_.close_backing(backing_id);
  } catch (const Error& error) {
    log_.warning("cannot close backing id {}: {}", backing_id, error.what());
  }
}

}  // namespace weightfs::fuse
