// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "weightfs/client.hpp"

#include "base/error.hpp"
#include "control/json_codec.hpp"
#include "control/listen_socket.hpp"
#include "net/http_client.hpp"
#include "net/percent_encoding.hpp"

#include <fmt/format.h>

#include <stop_token>
#include <utility>

namespace weightfs::api {

using control::Json;
using net::Method;

namespace {

/// A listing of a million files fits.
constexpr std::uint64_t kMaxAnswer = 1ULL << 30;
/// How long the daemon may hold an answer back; the transport's patience is longer.
constexpr int kQuietWait = 20;
constexpr int kWatchedWait = 1;
constexpr std::chrono::milliseconds kTransportPatience{120'000};

std::string model_target(const std::string& name, std::string_view action = {}) {
  return fmt::format("/v1/models/{}{}", net::percent_encode_path(name), action);
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
      : socket_(std::move(options.socket)),
        http_(net::HttpClientOptions{.stall_timeout = kTransportPatience, .unix_socket = socket_}) {
  }

  std::string call(Method method, const std::string& target, const std::string& body = {}) {
    return exchange(method, target, body).second;
  }

  /// A request that may be answered 202: follows the job to its end.
  std::string follow(Method method, const std::string& target, const std::string& body,
                     const OnProgress& on_progress) {
    const int wait = on_progress ? kWatchedWait : kQuietWait;
    const char joint = target.find('?') == std::string::npos ? '?' : '&';
    auto [status, answer] = exchange(method, fmt::format("{}{}wait={}", target, joint, wait), body);
    while (status == 202) {
      const Json json = control::parse_json(answer);
      std::uint64_t job = 0;
      control::from_json(json.value("job", Json()), job, "job");
      if (on_progress) {
        JobProgress progress;
        control::from_json(json.value("progress", Json::object()), progress, "progress");
        on_progress(progress);
      }
      std::tie(status, answer) =
          exchange(Method::kGet, fmt::format("/v1/jobs/{}?wait={}", job, wait), {});
    }
    return answer;
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
  std::pair<int, std::string> exchange(Method method, const std::string& target,
                                       const std::string& body) {
    net::Request request;
    request.method = method;
    request.url = "http://weightfs" + target;
    request.body = body;
    request.max_redirects = 0;
    std::pair<net::ResponseHead, std::string> answer;
    try {
      answer = http_.fetch(request, kMaxAnswer, std::stop_token());
    } catch (const Error& error) {
      throw unreachable(error);
    }
    const int status = answer.first.status;
    if (status == 200 || status == 202) return {status, std::move(answer.second)};
    throw refusal(status, answer.second);
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

  /// Says what is wrong with the socket rather than with the transport.
  ClientError unreachable(const Error& transport) const {
    std::string reason = transport.what();
    try {
      (void)control::connect_unix(socket_);
    } catch (const Error& error) {
      reason = error.what();
    }
    return ClientError(ClientError::kUnreachable,
                       fmt::format("no daemon can be reached: {}", reason));
  }

  std::string socket_;
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

Model Client::add(const AddRequest& request, const OnProgress& on_progress) {
  return Connection::checked([&] {
    return decoded<Model>(
        connection_->follow(Method::kPost, "/v1/models", control::encode(request), on_progress));
  });
}

UpdateResult Client::update(const std::string& name, bool cold, const OnProgress& on_progress) {
  return Connection::checked([&] {
    const std::string target = model_target(name, ":update") + (cold ? "?cold=1" : "");
    return decoded<UpdateResult>(connection_->follow(Method::kPost, target, {}, on_progress));
  });
}

VerifyResult Client::verify(const std::string& name, const OnProgress& on_progress) {
  return Connection::checked([&] {
    const std::string target = name.empty() ? "/v1/verify" : model_target(name, ":verify");
    return decoded<VerifyResult>(connection_->follow(Method::kPost, target, {}, on_progress));
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

Freed Client::evict(const std::string& name, const EvictOptions& options) {
  return Connection::checked([&] {
    const std::string target =
        fmt::format("{}?shared={:d}&dry_run={:d}", model_target(name, ":evict"), options.shared,
                    options.dry_run);
    return decoded<Freed>(connection_->call(Method::kPost, target));
  });
}

Freed Client::remove(const std::string& name, bool dry_run) {
  return Connection::checked([&] {
    return decoded<Freed>(
        connection_->call(Method::kDelete, model_target(name) + (dry_run ? "?dry_run=1" : "")));
  });
}

void Client::unmount(const UnmountRequest& request) {
  Connection::checked(
      [&] { return connection_->call(Method::kPost, "/v1/unmount", control::encode(request)); });
}

}  // namespace weightfs::api
