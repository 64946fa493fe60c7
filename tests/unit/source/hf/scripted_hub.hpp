// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "net/scripted_server.hpp"
#include "source/hf/hub_pool.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace weightfs::test {

/// One repository of a Hub, org/name, and the storage that its large files are at, on another port.
/// Answers as the Hub does: 302 to a signed URL for files in LFS, 307 and 200 for those in git.
/// Thread-safe.
class ScriptedHub {
 public:
  struct File {
    std::string content;
    bool lfs = false;
  };
  using Files = std::map<std::string, File>;
  /// Sees each request first; true where it has answered it.
  using Fault = std::function<bool(const SeenRequest&, ScriptedServer::Connection&)>;

  explicit ScriptedHub(Files files);

  void set_fault(Fault fault);
  void set_storage_fault(Fault fault);
  /// What each page of the tree has at most.
  void set_page_size(std::size_t size);
  /// A commit with these files is what main is from now on.
  void commit(const std::string& id, Files files);

  [[nodiscard]] source::HubAccess access() const;
  [[nodiscard]] std::string commit() const;
  [[nodiscard]] std::string storage_url(const std::string& path) const {
    return storage_.url(path);
  }
  /// How many requests to the Hub had this in their target.
  [[nodiscard]] std::size_t count(const std::string& part);
  [[nodiscard]] ScriptedServer& hub() noexcept { return hub_; }
  [[nodiscard]] ScriptedServer& storage() noexcept { return storage_; }

 private:
  struct State {
    std::map<std::string, Files> commits;
    std::string main;
    std::size_t page_size = 1000;
    std::size_t signatures = 0;
  };
  void handle(const SeenRequest& request, ScriptedServer::Connection& connection);
  void handle_storage(const SeenRequest& request, ScriptedServer::Connection& connection);
  std::string tree(const std::string& target);
  std::string resolve(const SeenRequest& request, const std::string& rest);

  Synchronized<State> state_;
  Synchronized<Fault> fault_;
  Synchronized<Fault> storage_fault_;
  ScriptedServer storage_;
  ScriptedServer hub_;
};

/// 40 digits made of one.
[[nodiscard]] inline std::string git_id(char digit) {
  return std::string(40, digit);
}

}  // namespace weightfs::test
