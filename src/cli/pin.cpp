// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/timestamp.hpp"
#include "cli/commands.hpp"
#include "cli/end_argument.hpp"
#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

#include <chrono>

namespace weightfs::cli {

namespace {

class PinCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("NAME", "The model.", name_);
    options.option({"--until", "TIME",
                    "Only until then: as 2026-03-01T12:00:00Z, or a date, which is its beginning "
                    "(UTC)."},
                   request_.until);
    options.option({"--for", "DURATION", "Only for so long: as 12h."}, for_);
    options.option({"--reason", "TEXT", "Why, for whoever wonders later."}, request_.reason);
    options.option({"--owner", "TEXT", "For whom; the user who pins it, where none is given."},
                   request_.owner);
  }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    request_.until =
        end_argument({.until = request_.until, .duration = for_}, std::chrono::system_clock::now());
    api::Client client = context.client();
    const api::Model model = client.pin(name_, request_);
    if (context.json()) {
      context.print_json(control::to_json(model));
    } else {
      const std::string until =
          model.pin_until == 0 ? "" : " until " + show_timestamp(model.pin_until);
      context.streams().out << fmt::format("{}: pinned{}{}\n", printable(model.name), until,
                                           model.complete ? "" : what_is_missing(client));
    }
    return ExitCode::kDone;
  }

 private:
  // A daemon that keeps nothing pins all the same: for the next one, which may.
  std::string what_is_missing(api::Client& client) const {
    const api::Progress progress = client.progress(name_);
    if (progress.complete) return "";
    if (progress.running) return ", fetching what is missing";
    return fmt::format(", but what is missing is not being fetched: 'weightfs warm {}' says why",
                       printable(name_));
  }

  std::string name_;
  std::string for_;
  api::PinRequest request_;
};

}  // namespace

CommandEntry pin_command() {
  return {
      .name = "pin",
      .summary = "Keep a model in the store, whatever else needs the room",
      .text =
          "Marks the model as never to be evicted and fetches what is missing of it, where "
          "anything is kept. A pin that has an end guards nothing from then on. Pinning again "
          "replaces the pin.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<PinCommand>()); },
  };
}

}  // namespace weightfs::cli
