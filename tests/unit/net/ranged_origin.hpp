// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "net/scripted_server.hpp"

#include <functional>
#include <map>
#include <string>

namespace weightfs::test {

/// A well-behaved origin on loopback (ranges, HEAD, If-Match, If-Unmodified-Since), which a test
/// can make misbehave for single requests. Thread-safe.
class RangedOrigin {
 public:
  struct Object {
    std::string content;
    std::string etag;           ///< none where empty
    std::string last_modified;  ///< none where empty
  };
  using Objects =
      std::map<std::string, Object>;  ///< by request target, as it stands in the request
  /// Sees each request first; true where it has answered it.
  using Fault = std::function<bool(const SeenRequest&, ScriptedServer::Connection&)>;

  explicit RangedOrigin(Objects objects);

  void put(const std::string& target, Object object);
  void set_fault(Fault fault);
  [[nodiscard]] ScriptedServer& server() noexcept { return server_; }
  [[nodiscard]] std::string url(std::string_view path) const { return server_.url(path); }
  /// How many requests were of this method.
  [[nodiscard]] std::size_t count(std::string_view method) const;

 private:
  void handle(const SeenRequest& request, ScriptedServer::Connection& connection);

  Synchronized<Objects> objects_;
  Synchronized<Fault> fault_;
  ScriptedServer server_;
};

}  // namespace weightfs::test
