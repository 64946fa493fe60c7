// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "base/quantity.hpp"
#include "base/timestamp.hpp"
#include "cli/commands.hpp"
#include "cli/end_argument.hpp"
#include "cli/input_check.hpp"
#include "cli/lease_text.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

#include <chrono>

namespace weightfs::cli {

namespace {

class LeasePutCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("ID", "Chosen by you; the same again renews the lease.", id_);
    options.arguments("ARTIFACT",
                      "A model, a revision of one as NAME@REVISION, or a snapshot's id.",
                      request_.artifacts);
    options.option({"--not-before", "TIME",
                    "When the job begins, by which all is to be there: as 2026-03-01T12:00:00Z, or "
                    "a date; now, where it is not given."},
                   request_.not_before);
    options.option({"--until", "TIME", "When the lease is over."}, request_.until);
    options.option({"--for", "DURATION", "How long from now until it is over: as 12h."}, for_);
    options.option({"--bandwidth", "SIZE", "Bytes per second to fetch it with, at most."},
                   bandwidth_);
    options.number(
        {"--priority", "NUMBER", "Of leases that are due at the same time, the higher goes first."},
        priority_, -kMostPriority, kMostPriority);
    options.option(
        {"--owner", "TEXT", "For whom; as before, or the user who takes it, where none is given."},
        request_.owner);
  }

  ExitCode run(Context& context) override {
    using std::chrono::system_clock;
    check_lease_argument(id_);
    const auto now = system_clock::now();
    request_.until = end_argument({.until = request_.until, .duration = for_}, now);
    if (request_.until.empty())
      throw UsageError("say --until when the lease holds, or --for how long");
    if (request_.not_before.empty()) {
      const auto seconds = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch());
      request_.not_before = show_timestamp(seconds.count());
    }
    request_.not_before = end_argument({.until = request_.not_before, .duration = ""}, now);
    request_.bandwidth = bandwidth();
    request_.priority = priority_;
    const api::Lease lease = context.client().put_lease(id_, request_);
    if (context.json()) {
      context.print_json(control::to_json(lease));
    } else {
      context.streams().out << printable(lease_text(lease)) << '\n';
    }
    return ExitCode::kDone;
  }

 private:
  static constexpr int kMostPriority = 1'000'000;

  [[nodiscard]] std::uint64_t bandwidth() const {
    if (bandwidth_.empty()) return 0;
    try {
      return parse_size(bandwidth_);
    } catch (const Error& error) {
      throw UsageError(error.what());
    }
  }

  std::string id_;
  std::string for_;
  std::string bandwidth_;
  int priority_ = 0;
  api::LeaseRequest request_;
};

}  // namespace

CommandEntry lease_put_command() {
  return {
      .name = "lease put",
      .summary = "Have models on the node when a job begins, and until it is over",
      .text =
          "Fetches what is missing of the models, so that all of it is there when the job begins: "
          "what is due first, first. Nothing of it is evicted until the lease is over. A name is "
          "leased as what it shows now. A lease that cannot fit beside what else is kept is "
          "refused. Only who took a lease may renew it or end it, beside root and the daemon's own "
          "user.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<LeasePutCommand>()); },
  };
}

}  // namespace weightfs::cli
