// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/router.hpp"

#include "control/json_codec.hpp"
#include "control/peer.hpp"
#include "control/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <optional>
#include <utility>

namespace weightfs::control {

/// A request that has found its route. `rest` is the path after the route's prefix: a name, a
/// number.
struct RouteCall {
  std::string rest;
  const Target& target;
  const std::string& body;
  std::optional<uid_t> user;  ///< whom it is from

  [[nodiscard]] DryRun dry_run() const {
    return target.flag("dry_run") ? DryRun::kYes : DryRun::kNo;
  }
};

/// What a request may say beside its path. Anything else is refused: it is more likely misspelt
/// ("?dryrun=1" of a removal) than superfluous.
struct Accepted {
  enum class Body { kNone, kObject };  ///< an object's keys are checked where it is read
  std::array<std::string_view, 4> parameters = {};
  Body body = Body::kNone;
};

/// `path` that ends in '/' is a prefix and takes the rest of the path.
struct Router::Route {
  Method method;
  std::string_view path;
  std::string_view action;
  Response (Router::*answer)(const RouteCall&);
  Accepted accepted = {};

  [[nodiscard]] bool matches(const Target& target) const noexcept {
    if (target.action != action) return false;
    return path.ends_with('/') ? target.path.starts_with(path) && target.path.size() > path.size()
                               : target.path == path;
  }
};

std::span<const Router::Route> Router::routes() noexcept {
  static constexpr Accepted kWait{.parameters = {"wait"}};
  static constexpr Accepted kObject{.body = Accepted::Body::kObject};
  static constexpr Accepted kPrune{.parameters = {"dry_run", "keep"}};
  static constexpr std::array kRoutes{
      Route{Method::kGet, "/v1/status", "", &Router::status},
      Route{Method::kGet, "/v1/fills", "", &Router::fills},
      Route{Method::kGet, "/v1/models", "", &Router::models},
      Route{Method::kPost,
            "/v1/models",
            "",
            &Router::add,
            {.parameters = {"wait"}, .body = Accepted::Body::kObject}},
      Route{Method::kGet, "/v1/models/", "", &Router::model},
      Route{Method::kDelete, "/v1/models/", "", &Router::remove, {.parameters = {"dry_run"}}},
      Route{Method::kGet, "/v1/models/", "progress", &Router::progress},
      Route{Method::kPost,
            "/v1/models/",
            "update",
            &Router::update,
            {.parameters = {"cold", "allow_missing", "now", "wait"}}},
      Route{Method::kPost, "/v1/models/", "warm", &Router::warm},
      Route{Method::kPost, "/v1/models/", "pin", &Router::pin, kObject},
      Route{Method::kPost, "/v1/models/", "unpin", &Router::unpin},
      Route{Method::kPost, "/v1/models/", "confirm", &Router::confirm},
      Route{Method::kPost, "/v1/models/", "rollback", &Router::rollback},
      Route{Method::kPost,
            "/v1/models/",
            "evict",
            &Router::evict,
            {.parameters = {"dry_run", "shared"}}},
      Route{Method::kPost, "/v1/models/", "prune", &Router::prune, kPrune},
      Route{Method::kPost, "/v1/prune", "", &Router::prune, kPrune},
      Route{Method::kPost, "/v1/models/", "verify", &Router::verify, kWait},
      Route{Method::kPost, "/v1/verify", "", &Router::verify, kWait},
      Route{Method::kPost,
            "/v1/import",
            "",
            &Router::import_files,
            {.parameters = {"wait"}, .body = Accepted::Body::kObject}},
      Route{Method::kGet, "/v1/why", "", &Router::why, {.parameters = {"path"}}},
      Route{Method::kGet, "/v1/config/diff", "", &Router::config_diff},
      Route{Method::kPost, "/v1/reload", "", &Router::reload},
      Route{Method::kPost, "/v1/mode", "", &Router::set_mode, kObject},
      Route{Method::kGet, "/v1/leases", "", &Router::leases},
      Route{Method::kGet, "/v1/leases/", "", &Router::lease},
      Route{Method::kPut, "/v1/leases/", "", &Router::put_lease, kObject},
      Route{Method::kDelete, "/v1/leases/", "", &Router::remove_lease},
      Route{Method::kGet,
            "/v1/events",
            "",
            &Router::events,
            {.parameters = {"since", "limit", "wait"}}},
      Route{Method::kPost, "/v1/unmount", "", &Router::unmount, kObject},
      Route{Method::kGet, "/v1/jobs/", "", &Router::job, kWait},
  };
  return kRoutes;
}

namespace {

Response failure(Errc code, const std::string& message) {
  Json json;
  json["error"] = to_json(api::Fault{name(code), message});
  return {.status = http_status(code), .body = dump_json(json)};
}

template <class Value>
Response success(const Value& value) {
  return {.status = 200, .body = encode(value)};
}

template <class Value>
Response success_list(const char* key, const std::vector<Value>& list) {
  Json json;
  json[key] = to_json(list);
  return {.status = 200, .body = dump_json(json)};
}

/// What a request says. No body is an empty object.
template <class Value>
Value read_request(const std::string& body) {
  Value value;
  if (body.empty()) return value;
  const Json json = parse_json(body);
  from_json(json, value, "the body");
  for (const auto& [key, ignored] : json.items()) {
    bool known = false;
    each_field(value, [&](const std::string& field, const auto&) {
      known = known || key == field || key == field + std::string(kBase64Suffix);
    });
    if (!known) throw Error(Errc::kInvalid, fmt::format("unknown key \"{}\" in the body", key));
  }
  return value;
}

void check_accepted(const Accepted& accepted, const Target& target, const std::string& body) {
  for (const auto& [name, ignored] : target.parameters) {
    if (!name.empty() &&
        std::ranges::find(accepted.parameters, name) != accepted.parameters.end()) {
      continue;
    }
    throw Error(Errc::kInvalid, fmt::format("unknown parameter \"{}\" of this request", name));
  }
  if (accepted.body == Accepted::Body::kObject || body.empty()) return;
  // Libraries that always send something send an empty object.
  const Json json = parse_json(body);
  if (!json.is_object() || !json.empty()) {
    throw Error(Errc::kInvalid, "this request takes no body");
  }
}

std::uint64_t parse_number(const std::string& text, const char* what) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) {
    throw Error(Errc::kInvalid, fmt::format("{} must be a whole number, not '{}'", what, text));
  }
  return value;
}

std::chrono::seconds patience(const Target& target) {
  const auto found = target.parameters.find("wait");
  if (found == target.parameters.end()) return std::chrono::seconds(Router::kDefaultWait);
  const std::uint64_t wanted = parse_number(found->second, "wait");
  return std::chrono::seconds(std::min<std::uint64_t>(wanted, Router::kMaxWait));
}

}  // namespace

int http_status(Errc code) noexcept {
  switch (code) {
    case Errc::kInvalid:
      return 400;
    case Errc::kNotFound:
      return 404;
    case Errc::kPermission:
      return 403;
    case Errc::kTimedOut:
      return 504;
    case Errc::kUnavailable:
      return 502;
    case Errc::kChanged:
    case Errc::kBusy:
    case Errc::kNotReady:
      return 409;
    case Errc::kNoSpace:
      return 507;
    case Errc::kCancelled:
      return 503;
    case Errc::kUnsupported:
      return 501;
    case Errc::kCorrupt:
    case Errc::kIo:
    case Errc::kInternal:
      return 500;
  }
  return 500;
}

Router::Router(Operations& operations, Log log) : operations_(operations), log_(std::move(log)) {
}

Response Router::handle(const Request& request) noexcept {
  try {
    try {
      return dispatch(request);
    } catch (const Error& error) {
      return failure(error.code(), error.what());
    } catch (const std::exception& error) {
      log_.error("{}: {}", request.target, error.what());
      return failure(Errc::kInternal, error.what());
    }
  } catch (const std::exception&) {  // no memory even for the message
    return {.status = 500, .body = {}};
  }
}

Response Router::dispatch(const Request& request) {
  const Target target = parse_target(request.target);
  bool path_known = false;
  for (const Route& route : routes()) {
    if (!route.matches(target)) continue;
    path_known = true;
    if (route.method != request.method) continue;
    check_accepted(route.accepted, target, request.body);
    const std::string rest =
        route.path.ends_with('/') ? target.path.substr(route.path.size()) : std::string();
    return (this->*route.answer)(
        {.rest = rest, .target = target, .body = request.body, .user = request.user});
  }
  if (path_known) {
    Response response = failure(Errc::kInvalid, "this path takes another method");
    response.status = 405;
    return response;
  }
  std::string message = fmt::format("the API has no {}", target.path);
  if (!target.action.empty()) {
    message += fmt::format(" with the action :{} (a ':' in a name is written %3A)", target.action);
  }
  return failure(Errc::kNotFound, message);
}

Response Router::job_answer(JobId id, const RouteCall& call) {
  const JobView view = jobs_.wait(id, patience(call.target));
  if (view.error) return failure(view.error->code(), view.error->what());
  if (view.result) return {.status = 200, .body = *view.result};
  Json json;
  json["job"] = id;
  json["progress"] = to_json(view.progress);
  return {.status = 202, .body = dump_json(json)};
}

Response Router::status(const RouteCall&) {
  return success(operations_.status());
}

Response Router::fills(const RouteCall&) {
  return success_list("fills", operations_.fills());
}

Response Router::models(const RouteCall&) {
  return success_list("models", operations_.models());
}

Response Router::model(const RouteCall& call) {
  return success(operations_.model(call.rest));
}

Response Router::progress(const RouteCall& call) {
  return success(operations_.progress(call.rest));
}

Response Router::warm(const RouteCall& call) {
  return success(operations_.warm(call.rest));
}

Response Router::unpin(const RouteCall& call) {
  return success(operations_.unpin(call.rest));
}

Response Router::confirm(const RouteCall& call) {
  return success(operations_.confirm(call.rest));
}

Response Router::rollback(const RouteCall& call) {
  return success(operations_.rollback(call.rest));
}

Response Router::remove(const RouteCall& call) {
  return success(operations_.remove(call.rest, call.dry_run()));
}

Response Router::evict(const RouteCall& call) {
  const Shared shared = call.target.flag("shared") ? Shared::kEvict : Shared::kKeep;
  return success(operations_.evict(call.rest, shared, call.dry_run()));
}

Response Router::prune(const RouteCall& call) {
  const auto keep = call.target.parameters.find("keep");
  const std::uint64_t kept =
      keep == call.target.parameters.end() ? 0 : parse_number(keep->second, "keep");
  return success(operations_.prune(call.rest, kept, call.dry_run()));
}

Response Router::pin(const RouteCall& call) {
  auto request = read_request<api::PinRequest>(call.body);
  if (request.owner.empty() && call.user) request.owner = user_name(*call.user);
  return success(operations_.pin(call.rest, request));
}

Response Router::add(const RouteCall& call) {
  const auto request = read_request<api::AddRequest>(call.body);
  if (request.name.empty() || request.source.empty()) {
    throw Error(Errc::kInvalid, R"(the body must be {"name": "org/name", "source": "..."})");
  }
  const JobId id = jobs_.start(
      fmt::format("add {}", encode(request)),
      [this, request](const Job& job) { return encode(operations_.add(request, job)); });
  return job_answer(id, call);
}

Response Router::update(const RouteCall& call) {
  const UpdateHow how{
      .staging = call.target.flag("cold") ? Staging::kCold : Staging::kWarm,
      .missing = call.target.flag("allow_missing") ? Missing::kAllowed : Missing::kRefused,
      .flip = call.target.flag("now") ? Flip::kNow : Flip::kPatient,
  };
  const JobId id =
      jobs_.start(fmt::format("update {} {:d} {:d} {:d}", call.rest, how.staging == Staging::kCold,
                              how.missing == Missing::kAllowed, how.flip == Flip::kNow),
                  [this, name = call.rest, how](const Job& job) {
                    return encode(operations_.update(name, how, job));
                  });
  return job_answer(id, call);
}

Response Router::verify(const RouteCall& call) {
  const JobId id = jobs_.start(
      fmt::format("verify {}", call.rest),
      [this, name = call.rest](const Job& job) { return encode(operations_.verify(name, job)); });
  return job_answer(id, call);
}

Response Router::import_files(const RouteCall& call) {
  const auto request = read_request<api::ImportRequest>(call.body);
  if (!request.directory.starts_with('/')) {
    throw Error(Errc::kInvalid, R"(the body must be {"directory": "/an/absolute/path"})");
  }
  const JobId id = jobs_.start(
      fmt::format("import {}", encode(request)),
      [this, request](const Job& job) { return encode(operations_.import_files(request, job)); });
  return job_answer(id, call);
}

Response Router::why(const RouteCall& call) {
  const auto path = call.target.parameters.find("path");
  if (path == call.target.parameters.end() || path->second.empty()) {
    throw Error(Errc::kInvalid, "say which path: /v1/why?path=/models/org/name/file");
  }
  return success(operations_.why(path->second));
}

Response Router::config_diff(const RouteCall&) {
  return success(operations_.config_diff());
}

Response Router::reload(const RouteCall&) {
  return success(operations_.reload());
}

Response Router::set_mode(const RouteCall& call) {
  return success(operations_.set_mode(read_request<api::ModeRequest>(call.body).mode));
}

Response Router::leases(const RouteCall&) {
  return success_list("leases", operations_.leases());
}

Response Router::lease(const RouteCall& call) {
  return success(operations_.lease(call.rest));
}

Response Router::put_lease(const RouteCall& call) {
  return success(
      operations_.put_lease(call.rest, read_request<api::LeaseRequest>(call.body), call.user));
}

Response Router::remove_lease(const RouteCall& call) {
  operations_.remove_lease(call.rest, call.user);
  return {.status = 200, .body = "{}"};
}

Response Router::events(const RouteCall& call) {
  const auto number = [&](const char* name) -> std::optional<std::uint64_t> {
    const auto found = call.target.parameters.find(name);
    if (found == call.target.parameters.end()) return std::nullopt;
    return parse_number(found->second, name);
  };
  api::EventQuery query{.since = number("since")};
  query.limit = number("limit").value_or(query.limit);
  if (query.limit == 0) throw Error(Errc::kInvalid, "limit must be 1 at least");
  query.wait_seconds = std::min<std::uint64_t>(number("wait").value_or(0), kMaxWait);
  return success(operations_.events(query));
}

Response Router::unmount(const RouteCall& call) {
  const auto request = read_request<api::UnmountRequest>(call.body);
  operations_.unmount(request.lazy ? Unmount::kLazy : Unmount::kNow);
  return {.status = 200, .body = "{}"};
}

Response Router::job(const RouteCall& call) {
  return job_answer(parse_number(call.rest, "the job"), call);
}

}  // namespace weightfs::control
