// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "control/http_message.hpp"
#include "control/listen_socket.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

namespace weightfs::control {

struct ServerOptions {
  std::size_t max_body = 1 << 20;  ///< bytes; a longer one is answered 413
  unsigned connections = 256;      ///< at once; more wait in the socket's queue
  std::chrono::seconds idle_timeout{60};
};

/// HTTP/1.1 over a unix socket, in front of a Handler.
///
/// Threads: libmicrohttpd's, one that accepts and one per connection, so that a request that waits
/// for a job holds up nobody else. Thread-safe. `handler` must outlive it. The destructor
/// stops accepting, calls handler.close() and sees the running requests answered (for two seconds).
class Server {
 public:
  /// Serves from now on. Error(kIo) where the server cannot start.
  Server(ListenSocket socket, Handler& handler, ServerOptions options, Log log);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace weightfs::control
