// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>

namespace weightfs {

/// Why something failed, as a closed set. `fuse/` maps each to one errno, `cli/` to one exit code.
enum class Errc {
  kInvalid,      ///< the input is wrong: manifest, reference, option, path
  kNotFound,     ///< the name, file or object does not exist; asking again will not help
  kPermission,   ///< the source or the kernel says no
  kTimedOut,     ///< nothing moved before the deadline
  kUnavailable,  ///< temporarily out of reach: refused, reset, 5xx, 429
  kChanged,      ///< the object is no longer the one that was resolved
  kCorrupt,      ///< bytes do not have their digest
  kNoSpace,      ///< the local disk is full
  kIo,           ///< the local disk or the kernel failed
  kBusy,         ///< in use by somebody else (store lock, mount point)
  kNotReady,     ///< exists, but not (yet) in the state asked for
  kCancelled,    ///< the caller gave up or the process is stopping
  kUnsupported,  ///< not possible here: filesystem, kernel, format version
  kInternal,     ///< a broken invariant of ours
};

/// The name used in JSON and logs, e.g. "not_found".
const char* name(Errc code) noexcept;

/// The one exception type that crosses layers. The message is a sentence for a person and names
/// what was being done; context is added once, where it is known.
class Error : public std::runtime_error {
 public:
  Error(Errc code, const std::string& message) : std::runtime_error(message), code_(code) {}

  [[nodiscard]] Errc code() const noexcept { return code_; }

 private:
  Errc code_;
};

/// A failure that may go away by itself; `retry_after` is the least wait that the other side asked
/// for.
class TransientError final : public Error {
 public:
  using Delay = std::optional<std::chrono::milliseconds>;
  TransientError(Errc code, const std::string& message, Delay retry_after = std::nullopt)
      : Error(code, message), retry_after_(retry_after) {}

  [[nodiscard]] Delay retry_after() const noexcept { return retry_after_; }

 private:
  Delay retry_after_;
};

/// Throws the Error for `errno_value`: ENOSPC and EDQUOT are kNoSpace, ENOENT kNotFound, EACCES and
/// EPERM kPermission, EBUSY kBusy, ECANCELED kCancelled, everything else kIo. `what` says what was
/// tried.
[[noreturn]] void throw_errno(int errno_value, const std::string& what);

}  // namespace weightfs
