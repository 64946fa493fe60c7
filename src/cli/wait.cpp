// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "cli/input_check.hpp"
#include "cli/wait_for_model.hpp"

#include <optional>

namespace weightfs::cli {

namespace {

class WaitCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("NAME", "The model.", name_);
    options.option({"--timeout", "DURATION", "Give up with status 3 after this long."}, timeout_);
  }

  ExitCode run(Context& context) override {
    check_name_argument(name_);
    return wait_for_model(context, name_, timeout());
  }

 private:
  [[nodiscard]] std::optional<std::chrono::milliseconds> timeout() const {
    if (timeout_.empty()) return std::nullopt;
    try {
      return parse_duration(timeout_);
    } catch (const Error& error) {
      throw UsageError(std::string("--timeout: ") + error.what());
    }
  }

  std::string name_;
  std::string timeout_;
};

}  // namespace

CommandEntry wait_command() {
  return {
      .name = "wait",
      .summary = "Wait until a model is complete: an init container's whole job",
      .text =
          "Fetches what is missing and returns 0 when every byte of NAME is in the store and "
          "verified, "
          "3 when the timeout is over before, 1 when a file cannot be had, 4 when no daemon has "
          "answered. Whatever reads the "
          "model "
          "afterwards runs at the speed of the local disk.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<WaitCommand>()); },
  };
}

}  // namespace weightfs::cli
