// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/wait_for_model.hpp"

#include "base/quantity.hpp"
#include "cli/printable.hpp"
#include "cli/progress_line.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace weightfs::cli {

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr auto kDaemonPatience = 30s;
constexpr std::chrono::milliseconds kFirstPause = 20ms;
constexpr std::chrono::milliseconds kLongestPause = 500ms;

/// Asks the daemon, and keeps asking while it is away for less than kDaemonPatience.
class PatientClient {
 public:
  PatientClient(const Context& context, std::optional<SteadyClock::time_point> deadline)
      : client_(context.client(deadline)) {}

  /// nullopt while the daemon is away.
  std::optional<api::Progress> warm(const std::string& name) {
    return patiently([&] { return client_.warm(name); });
  }
  std::optional<api::Progress> progress(const std::string& name) {
    return patiently([&] { return client_.progress(name); });
  }

 private:
  template <class Call>
  std::optional<api::Progress> patiently(Call call) {
    try {
      const api::Progress progress = call();
      last_answer_ = SteadyClock::now();
      return progress;
    } catch (const api::ClientError& error) {
      const bool away = error.code() == api::ClientError::kUnreachable && last_answer_ &&
                        SteadyClock::now() - *last_answer_ < kDaemonPatience;
      if (!away) throw;
      return std::nullopt;
    }
  }

  api::Client client_;
  std::optional<SteadyClock::time_point> last_answer_;
};

void print_outcome(Context& context, const api::Progress& progress) {
  if (context.json()) {
    context.print_json(control::to_json(progress));
    return;
  }
  const std::string name = printable(progress.name);
  Streams& streams = context.streams();
  if (progress.complete) {
    streams.out << fmt::format("{}: complete, {} in {} files\n", name,
                               readable_size(progress.bytes), progress.files);
  } else if (progress.error) {
    streams.err << fmt::format("weightfs: {}: {}\n", name, printable(progress.error->message));
  } else {
    streams.err << fmt::format("weightfs: {}: not ready, {} of {} verified\n", name,
                               readable_size(progress.verified), readable_size(progress.bytes));
  }
}

}  // namespace

ExitCode wait_for_model(Context& context, const std::string& name,
                        std::optional<std::chrono::milliseconds> timeout) {
  std::optional<SteadyClock::time_point> deadline;
  if (timeout) deadline = SteadyClock::now() + *timeout;
  PatientClient client(context, deadline);
  std::optional<api::Progress> last;
  {
    ProgressLine line(context.streams());
    std::optional<api::Progress> now = client.warm(name);
    auto pause = kFirstPause;
    for (;;) {
      if (now) {
        last = now;
        line.update(SteadyClock::now(), name, last->written, last->bytes);
        if (last->complete || (last->error && !last->running)) break;
      }
      const auto time = SteadyClock::now();
      if (deadline && time >= *deadline) break;
      const auto left =
          deadline ? std::chrono::ceil<std::chrono::milliseconds>(*deadline - time) : kLongestPause;
      std::this_thread::sleep_for(std::min(pause, left));
      pause = std::min(pause * 2, kLongestPause);
      // A daemon that was started again knows nothing of the warm: ask for it anew.
      const bool forgotten = now && !now->running;
      now = forgotten ? client.warm(name) : client.progress(name);
    }
  }
  print_outcome(context, *last);
  if (last->complete) return ExitCode::kDone;
  return last->error && !last->running ? ExitCode::kFailed : ExitCode::kNotReady;
}

}  // namespace weightfs::cli
