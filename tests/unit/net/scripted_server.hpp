// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/synchronized.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace weightfs::test {

struct SeenRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  std::size_t connection = 0;  ///< 0 is the first that was accepted

  [[nodiscard]] std::optional<std::string> header(const std::string& name) const;
};

/// "HTTP/1.1 <status> Scripted", the headers, Content-Length of `body` where `headers` has none of
/// its own (and no Transfer-Encoding), and `body`.
[[nodiscard]] std::string answer(int status, const std::map<std::string, std::string>& headers,
                                 std::string_view body);

/// A server on loopback that plays the bytes a test wrote down, good HTTP or not.
///
/// Thread-safe. One thread accepts, one more runs each connection; the destructor ends and joins
/// them whatever they wait for. The handler runs on the connection threads and must outlive
/// nothing.
class ScriptedServer {
 public:
  /// What a handler does with the connection its request came over. Every wait ends when the server
  /// stops or the peer goes.
  class Connection {
   public:
    Connection(Fd socket, int stop_event, std::size_t number)
        : socket_(std::move(socket)), stop_event_(stop_event), number_(number) {}

    void send(std::string_view bytes);
    /// Sends nothing more, leaves the connection open and returns when the peer has closed it.
    void stall();
    void close() { socket_.reset(); }
    /// Closes with RST, so that the peer sees "connection reset".
    void reset();

   private:
    friend class ScriptedServer;
    [[nodiscard]] std::optional<SeenRequest> next_request();
    [[nodiscard]] bool receive();
    /// False when the server stops or the peer is gone.
    [[nodiscard]] bool wait_for(short events);

    Fd socket_;
    const int stop_event_;
    const std::size_t number_;
    std::string pending_;  ///< received, not yet part of a request
  };
  using Handler = std::function<void(const SeenRequest&, Connection&)>;

  /// Listens on a free port of 127.0.0.1, or on a unix socket where a path is given.
  explicit ScriptedServer(Handler handler, const std::filesystem::path& unix_socket = {});
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// "http://127.0.0.1:PORT" and `path`.
  [[nodiscard]] std::string url(std::string_view path) const;
  /// All requests so far, in the order of their arrival.
  [[nodiscard]] std::vector<SeenRequest> requests() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  struct Seen {
    std::vector<SeenRequest> requests;
    std::size_t connections = 0;
  };
  void accept_all();
  void serve(Connection& connection);

  const Handler handler_;
  Fd stop_event_;
  std::uint16_t port_ = 0;
  Fd listener_;
  Synchronized<Seen> seen_;
  std::list<std::jthread> served_;  ///< confined to the accepting thread until it ends
  std::jthread acceptor_;
};

}  // namespace weightfs::test
