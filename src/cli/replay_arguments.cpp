// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/replay_arguments.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "cli/exit_code.hpp"
#include "cli/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace weightfs::cli {

namespace {

using policy::Placement;
using policy::ReplayPolicy;
using policy::Sizes;

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

/// A number without a unit.
template <typename Number>
std::optional<Number> count(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

ReplayPolicy parse_policy(std::string_view text) {
  std::string names;
  for (const ReplayPolicy policy : policy::replay_policies()) {
    if (text == name(policy)) return policy;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name(policy));
  }
  throw UsageError(
      fmt::format("--policy: there is no '{}'; there are: {}", printable(text), names));
}

Placement parse_placement(std::string_view text) {
  if (text == "recorded") return Placement::kRecorded;
  if (text == "random") return Placement::kRandom;
  if (text == "rendezvous") return Placement::kRendezvous;
  if (text == "holder") return Placement::kHolder;
  throw UsageError(
      fmt::format("--placement: there is no '{}'; there are: random, rendezvous, holder, recorded",
                  printable(text)));
}

}  // namespace

ReplayCapacities parse_capacities(std::string_view text) {
  ReplayCapacities capacities;
  std::optional<Sizes> sizes;
  for (const std::string_view part : split(text)) {
    const auto artifacts = count<std::uint64_t>(part);
    std::uint64_t amount = 0;
    try {
      amount = artifacts ? *artifacts : parse_size(part);
    } catch (const Error&) {
      throw UsageError(fmt::format(
          "--capacity: '{}' is neither a number of artifacts nor a size; write 8, 500GB or 10GiB",
          printable(part)));
    }
    if (amount == 0) throw UsageError("--capacity: must be more than 0");
    const Sizes own = artifacts ? Sizes::kUnit : Sizes::kOfTrace;
    if (sizes.value_or(own) != own) {
      throw UsageError("--capacity: give numbers of artifacts or sizes, not both");
    }
    sizes = own;
    capacities.amounts.push_back(amount);
  }
  capacities.sizes = *sizes;
  return capacities;
}

std::vector<ReplayPolicy> parse_policies(const std::vector<std::string>& texts) {
  std::vector<ReplayPolicy> policies;
  const auto add = [&](ReplayPolicy policy) {
    if (std::ranges::find(policies, policy) == policies.end()) policies.push_back(policy);
  };
  for (const std::string& text : texts) {
    for (const std::string_view part : split(text)) add(parse_policy(part));
  }
  if (texts.empty()) {
    for (const ReplayPolicy policy : policy::replay_policies()) {
      if (policy != ReplayPolicy::kNever) add(policy);
    }
  }
  add(ReplayPolicy::kBelady);
  return policies;
}

policy::Lookahead parse_lookahead(std::string_view text) {
  if (const auto references = count<std::uint32_t>(text)) return std::int64_t{*references};
  try {
    return parse_duration(text);
  } catch (const Error&) {
    throw UsageError(fmt::format(
        "--lookahead: '{}' is neither a number of references nor a duration; write 20 or 6h",
        printable(text)));
  }
}

policy::ReplayOptions fleet_of(const policy::Trace& trace, std::string_view placement,
                               std::uint32_t nodes) {
  policy::ReplayOptions options;
  options.placement = !placement.empty()              ? parse_placement(placement)
                      : nodes == 0 && trace.nodes > 0 ? Placement::kRecorded
                                                      : Placement::kRandom;
  options.nodes = std::max<std::uint32_t>(nodes, 1);
  if (options.placement == Placement::kRecorded) {
    if (nodes > 0) throw UsageError("--nodes: with --placement recorded the trace says how many");
    if (trace.nodes == 0) {
      throw Error(Errc::kInvalid,
                  "--placement recorded: the trace names no nodes; say --node COLUMN");
    }
    options.nodes = trace.nodes;
  }
  return options;
}

}  // namespace weightfs::cli
