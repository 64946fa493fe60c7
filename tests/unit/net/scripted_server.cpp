// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/scripted_server.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

namespace weightfs::test {

namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

SeenRequest parse_head(const std::string& head) {
  SeenRequest request;
  std::istringstream lines(head);
  std::string line;
  std::getline(lines, line);
  std::istringstream(line) >> request.method >> request.target;
  while (std::getline(lines, line)) {
    if (line.ends_with('\r')) line.pop_back();
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) {
      request.headers[lower(line.substr(0, colon))] = line.substr(colon + 2);
    }
  }
  return request;
}

Fd listen_on(const sockaddr* address, socklen_t size) {
  Fd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::bind(socket.value(), address, size) != 0 || ::listen(socket.value(), 128) != 0) {
    throw_errno(errno, "listen for a test");
  }
  return socket;
}

Fd listen_on_loopback(std::uint16_t& port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  Fd socket = listen_on(generic, size);
  if (::getsockname(socket.value(), generic, &size) != 0) throw_errno(errno, "getsockname");
  port = ::ntohs(address.sin_port);
  return socket;
}

Fd listen_on_path(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return listen_on(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

/// False when `stop_event` fired first.
bool wait_readable_or_stop(int fd, short events, int stop_event) {
  pollfd polled[] = {{fd, events, 0}, {stop_event, POLLIN, 0}};
  while (::poll(polled, 2, -1) < 0) {
    if (errno != EINTR) return false;
  }
  return polled[1].revents == 0;
}

}  // namespace

std::optional<std::string> SeenRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

std::string answer(int status, const std::map<std::string, std::string>& headers,
                   std::string_view body) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " Scripted\r\n";
  bool framed = false;
  for (const auto& [name, value] : headers) {
    text += name + ": " + value + "\r\n";
    framed = framed || lower(name) == "content-length" || lower(name) == "transfer-encoding";
  }
  if (!framed) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + std::string(body);
}

bool ScriptedServer::Connection::wait_for(short events) {
  return socket_ && wait_readable_or_stop(socket_.value(), events, stop_event_);
}

void ScriptedServer::Connection::send(std::string_view bytes) {
  while (!bytes.empty() && wait_for(POLLOUT)) {
    const ssize_t sent = ::send(socket_.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return close();
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool ScriptedServer::Connection::receive() {
  while (wait_for(POLLIN)) {
    char buffer[16 << 10];
    const ssize_t got = ::recv(socket_.value(), buffer, sizeof buffer, 0);
    if (got > 0) {
      pending_.append(buffer, static_cast<std::size_t>(got));
      return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) break;
  }
  return false;
}

void ScriptedServer::Connection::stall() {
  while (receive()) {
  }
  close();
}

void ScriptedServer::Connection::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.value(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

std::optional<SeenRequest> ScriptedServer::Connection::next_request() {
  std::size_t end = std::string::npos;
  while ((end = pending_.find("\r\n\r\n")) == std::string::npos) {
    if (!receive()) return std::nullopt;
  }
  SeenRequest request = parse_head(pending_.substr(0, end));
  pending_.erase(0, end + 4);
  const std::size_t length = std::stoul(request.header("content-length").value_or("0"));
  while (pending_.size() < length) {
    if (!receive()) return std::nullopt;
  }
  request.body = pending_.substr(0, length);
  request.connection = number_;
  pending_.erase(0, length);
  return request;
}

ScriptedServer::ScriptedServer(Handler handler, const std::filesystem::path& unix_socket)
    : handler_(std::move(handler)),
      stop_event_(::eventfd(0, EFD_CLOEXEC)),
      listener_(unix_socket.empty() ? listen_on_loopback(port_) : listen_on_path(unix_socket)),
      acceptor_(start_thread("accept", [this](const std::stop_token&) { accept_all(); })) {
}

ScriptedServer::~ScriptedServer() {
  ::eventfd_write(stop_event_.value(), 1);
  acceptor_.join();
}

std::string ScriptedServer::url(std::string_view path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
}

std::vector<SeenRequest> ScriptedServer::requests() const {
  return seen_.with([](const Seen& seen) { return seen.requests; });
}

std::size_t ScriptedServer::connections() const {
  return seen_.with([](const Seen& seen) { return seen.connections; });
}

void ScriptedServer::accept_all() {
  while (wait_readable_or_stop(listener_.value(), POLLIN, stop_event_.value())) {
    Fd socket(::accept4(listener_.value(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) continue;
    const std::size_t number = seen_.with([](Seen& seen) { return seen.connections++; });
    auto connection = std::make_shared<Connection>(std::move(socket), stop_event_.value(), number);
    served_.push_back(
        start_thread("serve", [this, connection](const std::stop_token&) { serve(*connection); }));
  }
  served_.clear();
}

void ScriptedServer::serve(Connection& connection) {
  while (auto request = connection.next_request()) {
    seen_.with([&](Seen& seen) { seen.requests.push_back(*request); });
    handler_(*request, connection);
  }
  connection.close();
}

}  // namespace weightfs::test
