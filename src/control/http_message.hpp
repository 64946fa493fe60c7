// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <sys/types.h>
#include <optional>
#include <string>

namespace weightfs::control {

enum class Method { kGet, kPost, kPut, kDelete, kOther };

/// One request of the control API, whole. A value; knows no server library.
struct Request {
  Method method = Method::kGet;
  std::string target;  ///< path and query as they were sent, percent-encoded
  std::string body;
  std::optional<uid_t> user;  ///< whom it is from, where the kernel says so
};

struct Response {
  int status = 200;
  std::string body;  ///< JSON
};

/// Answers requests, from many threads at once. Must not throw.
class Handler {
 public:
  virtual ~Handler() = default;
  [[nodiscard]] virtual Response handle(const Request& request) noexcept = 0;
  /// The server is about to stop: requests that wait for something are answered at once from now
  /// on.
  virtual void close() noexcept = 0;
};

}  // namespace weightfs::control
