// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fuse/open_modes.hpp"
#include "fuse/parked_requests.hpp"
#include "vfs/filesystem.hpp"

#include <atomic>
#include <string>

struct fuse_conn_info;
struct fuse_lowlevel_ops;

namespace weightfs::fuse {

/// What every operation gets as libfuse's userdata. Owns the parked requests; what it refers to
/// must outlive the session. `has_passthrough` is written by INIT only.
struct OperationContext {
  vfs::Filesystem& filesystem;
  OpenModes& modes;
  std::string deployment;  ///< the consumer of whom nothing is known
  ParkedRequests parked;
  /// Set before the fetcher is taken down: what it cancels then must not be answered, so that the
  /// kernel keeps those requests for the next daemon.
  std::atomic<bool> muted = false;
  bool want_passthrough = true;
  bool has_passthrough = false;  ///< what INIT negotiated
};

/// The largest READ that we ask the kernel for, and so the size of its requests' buffers.
inline constexpr unsigned kMaxTransfer = 1 << 20;

/// The operation table for fuse_session_new, whose userdata is an OperationContext. All functions
/// are noexcept: an Error becomes an errno, anything else EIO.
[[nodiscard]] const fuse_lowlevel_ops& operations() noexcept;

}  // namespace weightfs::fuse
