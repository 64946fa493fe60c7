// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "cli/printable.hpp"
#include "cli/replay_arguments.hpp"
#include "cli/replay_plot.hpp"
#include "cli/table.hpp"
#include "cli/trace_file.hpp"
#include "control/json_codec.hpp"
#include "policy/replay.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weightfs::cli {

namespace {

using policy::ReplayPolicy;
using policy::ReplayResult;
using policy::Sizes;
using policy::Trace;

/// The results of every policy at one capacity, in the order of the policies.
struct Run {
  std::uint64_t capacity = 0;
  std::vector<ReplayResult> results;
};

char mark_of(ReplayPolicy policy) {
  switch (policy) {
    case ReplayPolicy::kSecondReference:
      return 'S';
    case ReplayPolicy::kLru:
      return 'L';
    case ReplayPolicy::kFifo:
      return 'F';
    case ReplayPolicy::kLookahead:
      return 'A';
    case ReplayPolicy::kBelady:
      return 'B';
    case ReplayPolicy::kNever:
      return 'N';
  }
  return '*';
}

std::string percent(double rate) {
  return fmt::format("{:.1f}%", rate * 100);
}

class ReplayCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("TRACE", "The trace, plain or gzip.", trace_);
    options.required_option({"--capacity", "SIZE|COUNT",
                             "What each node may hold: bytes as in 2TB, or a number of artifacts. "
                             "Several, with commas between, are compared."},
                            capacity_);
    options.repeated_option(
        {"--policy", "POLICY",
         "second-reference, lru, fifo, lookahead, belady or never; more with commas between. "
         "Default: all but never. belady is always added."},
        policies_);
    options.number(
        {"--nodes", "N", "Nodes of the fleet. Default: 1, or those that the trace names."}, nodes_,
        1, 65'536);
    options.option(
        {"--placement", "PLACEMENT",
         "Where a job lands: random, rendezvous (each artifact has its node), holder (a node "
         "that has the artifact, else the one with the most free room), or recorded (where "
         "the trace says). Default: random, or recorded without --nodes."},
        placement_);
    options.option(
        {"--lookahead", "N|DURATION",
         "How far policy lookahead knows the future: so many references, or a time as in "
         "6h. Default: 20."},
        lookahead_);
    options.flag("--plot", "Draw the hit rate over the capacity, also for a single one.", plot_);
    options.option({"--time", "COLUMN[:UNIT]", "CSV: when. Unit: s, ms, us or ns."}, columns_.time);
    options.option({"--artifact", "COLUMN", "CSV: what was used."}, columns_.artifact);
    options.option({"--consumer", "COLUMN", "CSV: by whom."}, columns_.consumer);
    options.option({"--node", "COLUMN", "CSV: on which node."}, columns_.node);
    options.option({"--size", "COLUMN[:UNIT]", "CSV: the artifact's size. Unit: as in GiB."},
                   columns_.size);
  }

  ExitCode run(Context& context) override {
    const ReplayCapacities capacities = parse_capacities(capacity_);
    const std::vector<ReplayPolicy> policies = parse_policies(policies_);
    const policy::Lookahead lookahead = parse_lookahead(lookahead_);
    const Trace trace = read_trace_file(trace_, columns_);
    policy::ReplayOptions options = fleet_of(trace, placement_, nodes_);
    options.sizes = capacities.sizes;
    options.lookahead = lookahead;
    check(trace, options);
    say_what_was_read(context.streams(), trace, options);

    const policy::Replay replay(trace, options);
    const auto run_at = [&](std::uint64_t capacity) {
      Run run{.capacity = capacity, .results = {}};
      for (const ReplayPolicy policy : policies)
        run.results.push_back(replay.run(policy, capacity));
      return run;
    };
    std::vector<Run> runs;
    for (const std::uint64_t capacity : capacities.amounts) runs.push_back(run_at(capacity));
    if (context.json()) {
      print_json(context, policies, runs);
      return ExitCode::kDone;
    }
    print_table(context.streams(), policies, runs, options.sizes);
    if (runs.size() == 1 && plot_) runs = steps_up_to(runs.front(), run_at);
    if (runs.size() > 1) print_plot(context.streams(), policies, runs, options.sizes);
    return ExitCode::kDone;
  }

 private:
  static void check(const Trace& trace, const policy::ReplayOptions& options) {
    if (options.sizes == Sizes::kOfTrace && !trace.has_sizes) {
      throw Error(Errc::kInvalid,
                  "the trace has no sizes: give --capacity as a number of artifacts, or the column "
                  "with --size");
    }
    if (std::holds_alternative<std::chrono::milliseconds>(options.lookahead) && !trace.has_times) {
      throw Error(
          Errc::kInvalid,
          "the trace has no times: give --lookahead as a number of references, or the column "
          "with --time");
    }
  }

  static void say_what_was_read(Streams& streams, const Trace& trace,
                                const policy::ReplayOptions& options) {
    streams.err << fmt::format("weightfs: {} references to {} artifacts{}, on {} node{}\n",
                               trace.references.size(), trace.artifacts,
                               trace.consumers == 0
                                   ? ", each by another consumer, as the trace names none"
                                   : fmt::format(" by {} consumers", trace.consumers),
                               options.nodes, options.nodes == 1 ? "" : "s");
    if (options.sizes == Sizes::kUnit) {
      streams.err << fmt::format("weightfs: every artifact counts as one{}\n",
                                 trace.has_sizes
                                     ? "; for the sizes of the trace give --capacity as a size"
                                     : ", as the trace has no sizes");
    }
    if (trace.skipped == 0) return;
    streams.err << fmt::format("weightfs: {} rows do not parse and are left out:", trace.skipped);
    for (const policy::SkippedRow& row : trace.first_skipped) {
      streams.err << fmt::format("{} line {} {}", &row == trace.first_skipped.data() ? "" : ";",
                                 row.line, printable(row.reason));
    }
    streams.err << (trace.skipped > trace.first_skipped.size() ? "; ...\n" : "\n");
  }

  static void print_json(Context& context, const std::vector<ReplayPolicy>& policies,
                         const std::vector<Run>& runs) {
    control::Json list = control::Json::array();
    for (const Run& run : runs) {
      control::Json json;
      json["capacity"] = run.capacity;
      json["policies"] = control::Json::array();
      for (std::size_t i = 0; i < policies.size(); ++i) {
        const ReplayResult& result = run.results[i];
        control::Json row;
        row["policy"] = name(policies[i]);
        row["object_hit_rate"] = result.object_hit_rate();
        row["byte_hit_rate"] = result.byte_hit_rate();
        row["repeated_job_hit_rate"] = result.repeated_job_hit_rate();
        row["pulled_bytes"] = result.pulled_bytes;
        row["evictions"] = result.evictions;
        json["policies"].push_back(std::move(row));
      }
      list.push_back(std::move(json));
    }
    context.print_json(runs.size() == 1 ? list.front() : list);
  }

  static std::string amount(std::uint64_t amount, Sizes sizes) {
    return sizes == Sizes::kUnit ? fmt::format("{}", amount) : readable_size(amount);
  }

  static void print_table(Streams& streams, const std::vector<ReplayPolicy>& policies,
                          const std::vector<Run>& runs, Sizes sizes) {
    Table table({{"CAPACITY", Align::kRight},
                 {"POLICY"},
                 {"HITS", Align::kRight},
                 {"BYTES", Align::kRight},
                 {"REPEATED", Align::kRight},
                 {"PULLED", Align::kRight},
                 {"EVICTIONS", Align::kRight}});
    for (const Run& run : runs) {
      for (std::size_t i = 0; i < policies.size(); ++i) {
        const ReplayResult& result = run.results[i];
        table.add({amount(run.capacity, sizes), std::string(name(policies[i])),
                   percent(result.object_hit_rate()), percent(result.byte_hit_rate()),
                   percent(result.repeated_job_hit_rate()), amount(result.pulled_bytes, sizes),
                   fmt::format("{}", result.evictions)});
      }
    }
    table.print(streams);
  }

  /// Eight capacities up to the one that was run, fewer where it is that small.
  template <typename RunAt>
  static std::vector<Run> steps_up_to(const Run& last, const RunAt& run_at) {
    const std::uint64_t steps = std::min<std::uint64_t>(last.capacity, 8);
    std::vector<Run> runs;
    for (std::uint64_t step = 1; step < steps; ++step) {
      runs.push_back(run_at(last.capacity / steps * step + last.capacity % steps * step / steps));
    }
    runs.push_back(last);
    return runs;
  }

  static void print_plot(Streams& streams, const std::vector<ReplayPolicy>& policies,
                         std::vector<Run> runs, Sizes sizes) {
    std::ranges::sort(runs, {}, &Run::capacity);
    std::vector<std::string> capacities;
    std::vector<PlotSeries> series;
    for (const ReplayPolicy policy : policies) {
      series.push_back({.name = std::string(name(policy)), .mark = mark_of(policy), .rates = {}});
    }
    for (const Run& run : runs) {
      capacities.push_back(amount(run.capacity, sizes));
      for (std::size_t i = 0; i < series.size(); ++i) {
        series[i].rates.push_back(run.results[i].object_hit_rate());
      }
    }
    streams.out << "\nHits over capacity:\n" << replay_plot(capacities, series, streams.columns);
  }

  std::string trace_;
  std::string capacity_;
  std::vector<std::string> policies_;
  unsigned nodes_ = 0;
  std::string placement_;
  std::string lookahead_ = "20";
  bool plot_ = false;
  policy::CsvColumns columns_;
};

}  // namespace

CommandEntry replay_command() {
  return {
      .name = "replay",
      .summary = "Show what cache policies would have made of a trace",
      .text =
          "Replays who used what, and shows for each policy the hits among all references, the "
          "bytes "
          "that they were of, the hits among repeated jobs (a consumer comes back to an artifact "
          "that "
          "it had before), the bytes pulled from the source, and the evictions. second-reference "
          "is "
          "what the daemon does, decided by the same code: 20 % of the capacity for what one "
          "consumer "
          "alone has used. belady knows the whole trace; no policy has more hits where all "
          "artifacts "
          "are of one size. Needs no daemon.\n\n"
          "TRACE is a CSV whose first line names its columns, the daemon's log of events, or a "
          "trace "
          "of libCacheSim (oracleGeneral); its content says which. Columns that are not named are "
          "guessed from the usual names, as ts_s, model, user, host, size. Rows that do not parse "
          "are "
          "counted, the first ones named, and left out.\n\n"
          "With --json it gives {\"capacity\", \"policies\": [{\"policy\", \"object_hit_rate\", "
          "\"byte_hit_rate\", \"repeated_job_hit_rate\", \"pulled_bytes\", \"evictions\"}]}, for "
          "several "
          "capacities a list of these; rates are from 0 to 1. With a number of artifacts as "
          "capacity "
          "every artifact is of one byte.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ReplayCommand>()); },
  };
}

}  // namespace weightfs::cli
