// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "control/http_message.hpp"
#include "control/job_table.hpp"
#include "control/operations.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace weightfs::control {

struct RouteCall;

/// Requests to operations and back: the table of routes, JSON in both directions, errors to
/// statuses, and jobs for what takes long. Every answer is JSON; a failure is {"error": {"code",
/// "message"}}.
///
/// A long operation is answered 200 with its result if it is over within `wait` seconds (a
/// parameter, kDefaultWait without it), else 202 with {"job", "progress"}; GET /v1/jobs/N then
/// answers as the first request would have, had it waited.
///
/// Thread-safe. Owns the running jobs; `operations` must outlive it.
class Router final : public Handler {
 public:
  static constexpr int kDefaultWait = 10;
  static constexpr int kMaxWait = 30;

  Router(Operations& operations, Log log);

  [[nodiscard]] Response handle(const Request& request) noexcept override;
  void close() noexcept override {
    jobs_.end_waiting();
    operations_.end_waiting();
  }

 private:
  struct Route;
  static std::span<const Route> routes() noexcept;

  [[nodiscard]] Response dispatch(const Request& request);
  [[nodiscard]] Response job_answer(JobId id, const RouteCall& call);

  Response status(const RouteCall& call);
  Response fills(const RouteCall& call);
  Response models(const RouteCall& call);
  Response add(const RouteCall& call);
  Response model(const RouteCall& call);
  Response remove(const RouteCall& call);
  Response progress(const RouteCall& call);
  Response update(const RouteCall& call);
  Response warm(const RouteCall& call);
  Response pin(const RouteCall& call);
  Response unpin(const RouteCall& call);
  Response confirm(const RouteCall& call);
  Response rollback(const RouteCall& call);
  Response evict(const RouteCall& call);
  Response prune(const RouteCall& call);
  Response verify(const RouteCall& call);
  Response import_files(const RouteCall& call);
  Response why(const RouteCall& call);
  Response config_diff(const RouteCall& call);
  Response reload(const RouteCall& call);
  Response set_mode(const RouteCall& call);
  Response leases(const RouteCall& call);
  Response lease(const RouteCall& call);
  Response put_lease(const RouteCall& call);
  Response remove_lease(const RouteCall& call);
  Response events(const RouteCall& call);
  Response unmount(const RouteCall& call);
  Response job(const RouteCall& call);

  Operations& operations_;
  Log log_;
  JobTable jobs_;
};

/// The status that goes with an error: 404 for kNotFound, 409 for kBusy, ... Pure.
[[nodiscard]] int http_status(Errc code) noexcept;

}  // namespace weightfs::control
