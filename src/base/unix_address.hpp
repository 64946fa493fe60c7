// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <filesystem>

namespace weightfs {

/// A path as bind(2) and connect(2) want it. A value. kInvalid where it is longer than unix(7)
/// allows.
class UnixAddress {
 public:
  explicit UnixAddress(const std::filesystem::path& path) {
    const std::string& text = path.native();
    if (text.empty() || text.size() >= sizeof address_.sun_path) {
      throw Error(Errc::kInvalid, "a socket's path has 1 to 107 bytes: '" + text + "'");
    }
    address_.sun_family = AF_UNIX;
    std::copy(text.begin(), text.end(), address_.sun_path);
  }

  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&address_);
  }
  [[nodiscard]] socklen_t size() const noexcept { return sizeof address_; }

 private:
  sockaddr_un address_{};
};

}  // namespace weightfs
