// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "control/listen_socket.hpp"

#include <sys/socket.h>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weightfs::tests {

struct RawAnswer {
  int status = 0;
  std::string head;
  std::string body;
};

/// Sends bytes and reads until the server closes: for what a proper client would not send.
inline RawAnswer raw_exchange(const std::filesystem::path& socket, std::string_view bytes) {
  const Fd fd = control::connect_unix(socket);
  while (!bytes.empty()) {
    const auto sent = ::send(fd.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // the server has answered and closed already
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string all;
  char buffer[4096];
  for (;;) {
    const auto got = ::recv(fd.value(), buffer, sizeof buffer, 0);
    if (got <= 0) break;
    all.append(buffer, static_cast<std::size_t>(got));
  }
  const auto end = all.find("\r\n\r\n");
  if (end == std::string::npos) throw std::runtime_error("no answer: " + all);
  return {std::stoi(all.substr(all.find(' ') + 1)), all.substr(0, end), all.substr(end + 4)};
}

inline RawAnswer raw_request(const std::filesystem::path& socket, const std::string& method,
                             const std::string& target, const std::string& body = "") {
  return raw_exchange(socket,
                      method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" +
                          "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

}  // namespace weightfs::tests
