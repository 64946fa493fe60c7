// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "weightfs/client.hpp"

#include "base/error.hpp"
#include "control/json_codec.hpp"
#include "control/listen_socket.hpp"
#include "control/socket_access.hpp"
#include "net/http_client.hpp"
#include "net/percent_encoding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stop_token>
#include <tuple>
#include <utility>

namespace weightfs::api {

using control::Json;
using net::Method;

namespace {

/// A listing of a million files fits.
constexpr std::uint64_t kMaxAnswer = 1ULL << 30;
/// How long the daemon may hold the answer to a long request back; seconds.
constexpr int kQuietWait = 20;
constexpr int kWatchedWait = 1;
/// How much more patience the requests get that the daemon works for before it answers.
constexpr int kWorkFactor = 6;
/// Of a deadline that is near, or over: enough for a daemon that answers.
constexpr std::chrono::milliseconds kLeastPatience{500};

/// kOnce: a second one would be answered differently, as rm is by "no such model".
enum class Repeat { kAllowed, kOnce };

std::string model_target(const std::string& name, std::string_view action = {}) {
  return fmt::format("/v1/models/{}{}", net::percent_encode_path(name), action);
}

std::string lease_target(const std::string& id) {
  return "/v1/leases/" + net::percent_encode(id);
}

template <class Value>
Value decoded(const std::string& body) {
  return control::decode<Value>(body);
}

}  // namespace

/// Requests and answers as text, errors as ClientError.
class Client::Connection {
 public:
  explicit Connection(ClientOptions options)
      : options_(std::move(options)),
        http_(net::HttpClientOptions{.unix_socket = options_.socket}) {}

  std::string call(Method method, const std::string& target, const std::string& body = {}) {
    return exchange({.method = method, .target = target, .body = body}).second;
  }

  /// For requests that the daemon works for before it answers, and that must not be repeated.
  std::string work(Method method, const std::string& target, const std::string& body = {}) {
    return exchange({.method = method,
                     .target = target,
                     .body = body,
                     .patience = options_.patience * kWorkFactor,
                     .repeat = Repeat::kOnce})
        .second;
  }

  /// A request that may be answered 202: follows the job to its end.
  std::string follow(Method method, const std::string& target, const std::string& body,
                     const OnProgress& on_progress) {
    const char joint = target.find('?') == std::string::npos ? '?' : '&';
    int wait = time_to_hold(on_progress ? kWatchedWait : kQuietWait);
    auto [status, answer] = exchange({.method = method,
                                      .target = fmt::format("{}{}wait={}", target, joint, wait),
                                      .body = body,
                                      .patience = options_.patience + std::chrono::seconds(wait)});
    while (status == 202) {
      const Json json = control::parse_json(answer);
      std::uint64_t job = 0;
      control::from_json(json.value("job", Json()), job, "job");
      if (on_progress) {
        JobProgress progress;
        control::from_json(json.value("progress", Json::object()), progress, "progress");
        on_progress(progress);
      }
      if (time_left() <= std::chrono::milliseconds(0)) {
        throw ClientError(name(Errc::kTimedOut), "not done in time; the daemon goes on with it");
      }
      wait = time_to_hold(wait);
      std::tie(status, answer) =
          exchange({.method = Method::kGet,
                    .target = fmt::format("/v1/jobs/{}?wait={}", job, wait),
                    .patience = options_.patience + std::chrono::seconds(wait)});
    }
    return answer;
  }

  std::string events(const EventQuery& query) {
    const int wait =
        time_to_hold(static_cast<int>(std::min<std::uint64_t>(query.wait_seconds, kQuietWait)));
    std::string target = fmt::format("/v1/events?limit={}&wait={}", query.limit, wait);
    if (query.since) target += fmt::format("&since={}", *query.since);
    return exchange({.method = Method::kGet,
                     .target = target,
                     .patience = options_.patience + std::chrono::seconds(wait)})
        .second;
  }

  /// Runs `body` and turns what a broken answer throws into a ClientError.
  template <class Body>
  static auto checked(Body body) {
    try {
      return body();
    } catch (const Error& error) {
      throw ClientError(name(error.code()), fmt::format("the daemon's answer: {}", error.what()));
    }
  }

 private:
  struct Exchange {
    Method method;
    std::string target;
    std::string body = {};
    std::optional<std::chrono::milliseconds> patience = {};  ///< else the options'
    Repeat repeat = Repeat::kAllowed;
  };

  std::pair<int, std::string> exchange(const Exchange& asked) {
    net::Request request;
    request.method = asked.method;
    request.url = "http://weightfs" + asked.target;
    request.body = asked.body;
    request.max_redirects = 0;
    request.stall_timeout = patience(asked);
    std::pair<net::ResponseHead, std::string> answer;
    try {
      answer = http_.fetch(request, kMaxAnswer, std::stop_token());
    } catch (const Error& error) {
      check_listened_to(*request.stall_timeout, error);
      if (asked.repeat == Repeat::kOnce) throw unreachable(error.what());
      answer = fetch_again(asked, request);
    }
    const int status = answer.first.status;
    if (status == 200 || status == 202) return {status, std::move(answer.second)};
    throw refusal(status, answer.second);
  }

  /// The daemon went while it had the request. Its successor takes it from the same queue.
  std::pair<net::ResponseHead, std::string> fetch_again(const Exchange& asked,
                                                        net::Request& request) {
    request.stall_timeout = patience(asked);
    try {
      return http_.fetch(request, kMaxAnswer, std::stop_token());
    } catch (const Error& error) {
      check_listened_to(*request.stall_timeout, error);
      throw unreachable(error.what());
    }
  }

  [[nodiscard]] std::chrono::milliseconds time_left() const {
    if (!options_.deadline) return std::chrono::milliseconds::max();
    return std::chrono::ceil<std::chrono::milliseconds>(*options_.deadline -
                                                        std::chrono::steady_clock::now());
  }

  /// For how many seconds the daemon may hold an answer back, `most` at the most.
  [[nodiscard]] int time_to_hold(int most) const {
    const auto left = std::chrono::floor<std::chrono::seconds>(time_left());
    return static_cast<int>(std::clamp<std::chrono::seconds::rep>(left.count(), 0, most));
  }

  [[nodiscard]] std::chrono::milliseconds patience(const Exchange& asked) const {
    const std::chrono::milliseconds usual = asked.patience.value_or(options_.patience);
    return options_.deadline ? std::min(std::max(time_left(), kLeastPatience), usual) : usual;
  }

  static ClientError refusal(int status, const std::string& body) {
    Fault fault;
    try {
      control::from_json(control::parse_json(body).value("error", Json()), fault, "error");
    } catch (const Error&) {
      fault = {name(Errc::kInternal), fmt::format("the daemon answered with status {}", status)};
    }
    return ClientError(fault.code, fault.message);
  }

  /// Throws what is wrong with the socket, or with whoever listens there; returns where a daemon
  /// listens that is ready for another request.
  void check_listened_to(std::chrono::milliseconds patience, const Error& transport) const {
    if (transport.code() == Errc::kTimedOut) {
      throw ClientError(
          ClientError::kUnreachable,
          fmt::format("the daemon of {} has not answered for {:.3g} s: it is starting, "
                      "stopped, or hangs",
                      options_.socket, static_cast<double>(patience.count()) / 1000));
    }
    try {
      (void)control::connect_unix(options_.socket);
    } catch (const Error& error) {
      throw unreachable(error.code() == Errc::kPermission
                            ? error.what() + control::who_may_connect(options_.socket)
                            : error.what());
    }
  }

  static ClientError unreachable(const std::string& reason) {
    return ClientError(ClientError::kUnreachable,
                       fmt::format("no daemon can be reached: {}", reason));
  }

  ClientOptions options_;
  net::HttpClient http_;
};

Client::Client(ClientOptions options)
    : connection_(std::make_unique<Connection>(std::move(options))) {
}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Status Client::status() {
  return Connection::checked(
      [&] { return decoded<Status>(connection_->call(Method::kGet, "/v1/status")); });
}

std::vector<FillStatus> Client::fills() {
  return Connection::checked([&] {
    std::vector<FillStatus> fills;
    const Json json = control::parse_json(connection_->call(Method::kGet, "/v1/fills"));
    control::from_json(json.value("fills", Json()), fills, "fills");
    return fills;
  });
}

std::vector<Model> Client::models() {
  return Connection::checked([&] {
    std::vector<Model> models;
    const Json json = control::parse_json(connection_->call(Method::kGet, "/v1/models"));
    control::from_json(json.value("models", Json()), models, "models");
    return models;
  });
}

ModelDetail Client::model(const std::string& name) {
  return Connection::checked(
      [&] { return decoded<ModelDetail>(connection_->call(Method::kGet, model_target(name))); });
}

Progress Client::progress(const std::string& name) {
  return Connection::checked([&] {
    return decoded<Progress>(connection_->call(Method::kGet, model_target(name, ":progress")));
  });
}

Why Client::why(const std::string& path) {
  return Connection::checked([&] {
    return decoded<Why>(
        connection_->call(Method::kGet, "/v1/why?path=" + net::percent_encode(path)));
  });
}

EventPage Client::events(const EventQuery& query) {
  return Connection::checked([&] { return decoded<EventPage>(connection_->events(query)); });
}

Model Client::add(const AddRequest& request, const OnProgress& on_progress) {
  return Connection::checked([&] {
    return decoded<Model>(
        connection_->follow(Method::kPost, "/v1/models", control::encode(request), on_progress));
  });
}

UpdateResult Client::update(const std::string& name, const UpdateOptions& options,
                            const OnProgress& on_progress) {
  return Connection::checked([&] {
    const std::string target =
        fmt::format("{}?cold={:d}&allow_missing={:d}&now={:d}", model_target(name, ":update"),
                    options.cold, options.allow_missing, options.now);
    return decoded<UpdateResult>(connection_->follow(Method::kPost, target, {}, on_progress));
  });
}

VerifyResult Client::verify(const std::string& name, const OnProgress& on_progress) {
  return Connection::checked([&] {
    const std::string target = name.empty() ? "/v1/verify" : model_target(name, ":verify");
    return decoded<VerifyResult>(connection_->follow(Method::kPost, target, {}, on_progress));
  });
}

ImportResult Client::import_files(const ImportRequest& request, const OnProgress& on_progress) {
  return Connection::checked([&] {
    return decoded<ImportResult>(
        connection_->follow(Method::kPost, "/v1/import", control::encode(request), on_progress));
  });
}

Progress Client::warm(const std::string& name) {
  return Connection::checked([&] {
    return decoded<Progress>(connection_->call(Method::kPost, model_target(name, ":warm")));
  });
}

Model Client::pin(const std::string& name, const PinRequest& request) {
  return Connection::checked([&] {
    return decoded<Model>(
        connection_->call(Method::kPost, model_target(name, ":pin"), control::encode(request)));
  });
}

Model Client::unpin(const std::string& name) {
  return Connection::checked([&] {
    return decoded<Model>(connection_->call(Method::kPost, model_target(name, ":unpin")));
  });
}

Model Client::confirm(const std::string& name) {
  return Connection::checked([&] {
    return decoded<Model>(connection_->call(Method::kPost, model_target(name, ":confirm")));
  });
}

UpdateResult Client::rollback(const std::string& name) {
  return Connection::checked([&] {
    return decoded<UpdateResult>(connection_->work(Method::kPost, model_target(name, ":rollback")));
  });
}

std::vector<Lease> Client::leases() {
  return Connection::checked([&] {
    std::vector<Lease> leases;
    const Json json = control::parse_json(connection_->call(Method::kGet, "/v1/leases"));
    control::from_json(json.value("leases", Json()), leases, "leases");
    return leases;
  });
}

Lease Client::lease(const std::string& id) {
  return Connection::checked(
      [&] { return decoded<Lease>(connection_->call(Method::kGet, lease_target(id))); });
}

Lease Client::put_lease(const std::string& id, const LeaseRequest& request) {
  return Connection::checked([&] {
    return decoded<Lease>(
        connection_->call(Method::kPut, lease_target(id), control::encode(request)));
  });
}

void Client::remove_lease(const std::string& id) {
  Connection::checked([&] { return connection_->work(Method::kDelete, lease_target(id)); });
}

Freed Client::evict(const std::string& name, const EvictOptions& options) {
  return Connection::checked([&] {
    const std::string target =
        fmt::format("{}?shared={:d}&dry_run={:d}", model_target(name, ":evict"), options.shared,
                    options.dry_run);
    return decoded<Freed>(connection_->work(Method::kPost, target));
  });
}

Pruned Client::prune(const std::string& name, const PruneOptions& options) {
  return Connection::checked([&] {
    const std::string target = fmt::format(
        "{}?keep={}&dry_run={:d}", name.empty() ? "/v1/prune" : model_target(name, ":prune"),
        options.keep, options.dry_run);
    return decoded<Pruned>(connection_->work(Method::kPost, target));
  });
}

Freed Client::remove(const std::string& name, bool dry_run) {
  return Connection::checked([&] {
    return decoded<Freed>(
        connection_->work(Method::kDelete, model_target(name) + (dry_run ? "?dry_run=1" : "")));
  });
}

ConfigDiff Client::config_diff() {
  return Connection::checked(
      [&] { return decoded<ConfigDiff>(connection_->call(Method::kGet, "/v1/config/diff")); });
}

ConfigDiff Client::reload() {
  return Connection::checked(
      [&] { return decoded<ConfigDiff>(connection_->work(Method::kPost, "/v1/reload")); });
}

ModeChange Client::set_mode(const ModeRequest& request) {
  return Connection::checked([&] {
    return decoded<ModeChange>(
        connection_->work(Method::kPost, "/v1/mode", control::encode(request)));
  });
}

void Client::unmount(const UnmountRequest& request) {
  Connection::checked(
      [&] { return connection_->work(Method::kPost, "/v1/unmount", control::encode(request)); });
}

}  // namespace weightfs::api
