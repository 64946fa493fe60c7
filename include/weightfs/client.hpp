// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/events.hpp"
#include "weightfs/requests.hpp"
#include "weightfs/values.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weightfs::api {

/// Every failure of a Client. `code` is the API's word for it ("not_found", "busy", "permission",
/// ...), or kUnreachable where no daemon answers, be it that there is none or that it hangs.
class ClientError : public std::runtime_error {
 public:
  static constexpr const char* kUnreachable = "unreachable";

  ClientError(std::string code, const std::string& message)
      : std::runtime_error(message), code_(std::move(code)) {}
  [[nodiscard]] const std::string& code() const noexcept { return code_; }

 private:
  std::string code_;
};

struct ClientOptions {
  std::string socket = "/run/weightfs/control.sock";
  /// How long a daemon that is there may owe an answer. Long enough for one that was killed to be
  /// started again: where its keeper listens on, the request waits for the successor. remove,
  /// evict, prune and unmount, which the daemon may rightly take long for, have six times as much.
  std::chrono::milliseconds patience{20'000};
  /// When every call is over, give or take half a second, whatever the daemon does.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

struct EvictOptions {
  bool shared = false;  ///< also what other models have, but for pinned ones
  bool dry_run = false;
};

struct UpdateOptions {
  bool cold = false;           ///< flip before the new revision is fetched
  bool allow_missing = false;  ///< as of AddRequest
  bool now = false;            ///< do not wait for who is loading through the name
};

struct PruneOptions {
  std::uint64_t keep = 0;  ///< so many old revisions of each model stay, the newest
  bool dry_run = false;
};

/// Talks to the daemon of this machine over its control socket. Blocking; each call is one request,
/// and the long ones (add, update, verify, import) ask again until the daemon is done, however long
/// that takes, as long as it answers; giving up on one does not stop it there. A daemon that dies
/// over a request that may be repeated is given one more chance. Thread-safe. Throws ClientError.
class Client {
 public:
  using OnProgress = std::function<void(const JobProgress&)>;

  explicit Client(ClientOptions options = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  [[nodiscard]] Status status();
  [[nodiscard]] std::vector<FillStatus> fills();
  [[nodiscard]] std::vector<Model> models();
  [[nodiscard]] ModelDetail model(const std::string& name);
  [[nodiscard]] Progress progress(const std::string& name);
  /// `path` is absolute and below the mount point, or relative to it.
  [[nodiscard]] Why why(const std::string& path);
  [[nodiscard]] EventPage events(const EventQuery& query = {});

  Model add(const AddRequest& request, const OnProgress& on_progress = {});
  /// `cold` flips the name before the new revision is fetched.
  UpdateResult update(const std::string& name, const UpdateOptions& options = {},
                      const OnProgress& on_progress = {});
  /// All of the store where `name` is empty.
  VerifyResult verify(const std::string& name = {}, const OnProgress& on_progress = {});
  /// Takes what a directory of this machine has of the models into the store.
  ImportResult import_files(const ImportRequest& request, const OnProgress& on_progress = {});
  /// Returns at once; see progress().
  Progress warm(const std::string& name);
  Model pin(const std::string& name, const PinRequest& request = {});
  Model unpin(const std::string& name);
  Model confirm(const std::string& name);
  UpdateResult rollback(const std::string& name);
  [[nodiscard]] std::vector<Lease> leases();
  [[nodiscard]] Lease lease(const std::string& id);
  /// Takes a lease, or renews it; fetches what is missing, so that it is there by `not_before`.
  Lease put_lease(const std::string& id, const LeaseRequest& request);
  void remove_lease(const std::string& id);
  Freed evict(const std::string& name, const EvictOptions& options = {});
  /// Of all models where `name` is empty.
  Pruned prune(const std::string& name = {}, const PruneOptions& options = {});
  Freed remove(const std::string& name, bool dry_run = false);
  ConfigDiff config_diff();
  ConfigDiff reload();
  ModeChange set_mode(const ModeRequest& request);
  void unmount(const UnmountRequest& request = {});

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace weightfs::api
