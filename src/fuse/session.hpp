// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/log.hpp"
#include "fuse/notifier.hpp"
#include "fuse/open_modes.hpp"
#include "keeper/session_memory.hpp"
#include "vfs/filesystem.hpp"

#include <functional>
#include <memory>
#include <string>

namespace weightfs::fuse {

struct SessionOptions {
  unsigned threads = 4;
  bool passthrough = true;             ///< false: never ask the kernel for it
  std::string deployment = "unknown";  ///< the consumer of whom nothing is known
  /// Called once the kernel knows us: after INIT from a serving thread, after a resume from
  /// start(). No request but INIT is served before it has returned. Must not throw.
  std::function<void()> on_ready;
};

/// Serves one FUSE connection with stock libfuse: requests in, Filesystem calls, replies out.
///
/// Start of a connection: the kernel's INIT is saved to the SessionMemory before libfuse answers
/// it. Resume by a successor: libfuse insists on an INIT first, so it gets the saved one under a
/// unique number that the kernel is not waiting for (the kernel refuses that reply with ENOENT,
/// which libfuse ignores), then the kernel is asked to resend what the dead daemon had taken
/// (FUSE_NOTIFY_RESEND, Linux 6.9). OPEN and RELEASE count, so OpenModes sees to it that a request
/// that comes twice counts once; everything else is idempotent.
///
/// `threads` workers ("fuse-N") wait on the descriptor; none of them ever waits for the network.
/// Everything given must outlive it, and it must outlive the last reply: stop() it, take down the
/// fetcher, destroy it. Nothing is unmounted: requests then wait in the kernel for the next daemon.
class Session {
 public:
  Session(Fd device, vfs::Filesystem& filesystem, OpenModes& modes, keeper::SessionMemory& memory,
          Notifier& notifier, SessionOptions options, Log log);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// Starts the workers and returns.
  void start();
  /// Blocks until the connection is gone (unmounted, aborted) or end() was called.
  void wait();
  /// False once the mount is gone: unmounted by its last user, or aborted.
  [[nodiscard]] bool connected() const;
  /// Joins the workers; from then on nothing is answered. From the owner's thread, before what
  /// the parked requests wait for is taken down. May be called again.
  void stop();
  /// Makes wait() return; from any thread.
  void end();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::fuse
