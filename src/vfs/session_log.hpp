// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weightfs::vfs {

/// Records that outlive the daemon for as long as the kernel's session does, so that the next
/// daemon understands the node ids that the kernel still holds. Append-only, except that records
/// which later ones have made void (Incarnations::lasting) may be gone. Thread-safe.
class SessionLog {
 public:
  virtual ~SessionLog() = default;
  virtual void append(std::string_view record) = 0;
  [[nodiscard]] virtual std::vector<std::string> records() const = 0;
};

}  // namespace weightfs::vfs
