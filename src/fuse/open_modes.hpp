// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "keeper/session_memory.hpp"
#include "store/blob.hpp"
#include "vfs/node_id.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace weightfs::fuse {

/// Registers backing files with the kernel; the keeper does it for the daemon, a fake in tests.
class BackingRegistry {
 public:
  virtual ~BackingRegistry() = default;
  /// A backing id > 0. Error(kUnsupported) where the kernel or the filesystem cannot, kIo.
  virtual std::int32_t open_backing(const Fd& file) = 0;
  virtual void close_backing(std::int32_t backing_id) = 0;
};

struct PassthroughStatus {
  bool active = false;
  std::string reason;  ///< why not, in a sentence; empty when active
};

/// What an OPEN is answered with.
struct OpenMode {
  std::uint64_t handle = 0;                ///< the kernel gives it back with RELEASE
  std::optional<std::int32_t> backing_id;  ///< nullopt: the daemon serves the reads
};

/// In which mode each open node is, and how often it is open. The kernel's rules (Documentation/
/// filesystems/fuse/fuse-io.rst, fs/fuse/iomode.c): while a node is open its mode must not change,
/// and all passthrough opens of it must use one backing id; else the opener gets EIO. So an id is
/// registered with the first open, counted before each reply and closed after the last release, and
/// a node whose registration failed stays daemon-served until it is closed. The table is in the
/// SessionMemory: a successor goes on with it.
///
/// A successor gets again what its predecessor had taken and not answered, whatever that one had
/// done about it. So each open has a handle of its own: a RELEASE that comes twice counts once, and
/// an OPEN that comes twice is taken back by its request number before it is counted anew.
///
/// Thread-safe. The registry and the memory must outlive it. The lock is held while the keeper
/// registers (half a millisecond): a second opener of the node needs exactly that answer.
class OpenModes {
 public:
  OpenModes(BackingRegistry& registry, keeper::SessionMemory& memory, Log log);

  /// Says whether passthrough works at all, by registering `probe`, a file on the store's
  /// filesystem. After INIT; again once a filesystem that was missing is there.
  void probe(const Fd& probe);
  /// Passthrough is not to be used before the next probe(), and why.
  void postpone(const std::string& reason);
  /// Passthrough is not to be used, and why.
  void disable(const std::string& reason);
  [[nodiscard]] PassthroughStatus status() const;

  /// Counts an open; call before replying. `blob` where the node may be passed through; `request`
  /// is the number of the OPEN. Error(kNoSpace): too many files are open.
  OpenMode open(vfs::NodeId node, const std::optional<store::Blob>& blob, std::uint64_t request);
  /// Counts a release (or an open whose reply the kernel did not take). False if that was done
  /// before.
  bool release(vfs::NodeId node, std::uint64_t handle);
  /// Takes back what an earlier daemon counted for this OPEN request, which the kernel now sends
  /// again: it never saw the reply. Returns the node if there was anything.
  std::optional<vfs::NodeId> take_back(std::uint64_t request);

 private:
  struct State {
    PassthroughStatus status;
    bool disabled = false;
  };

  void close(std::int32_t backing_id);

  BackingRegistry& registry_;
  keeper::SessionMemory& memory_;
  const Log log_;
  Synchronized<State> state_;
};

}  // namespace weightfs::fuse
