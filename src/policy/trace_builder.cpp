// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/trace_builder.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::policy {

namespace {

/// Keeps the order of what happened at the same time.
void sort_by_time(std::vector<TraceReference>& references) {
  if (std::ranges::is_sorted(references, {}, &TraceReference::time)) return;
  std::vector<std::pair<std::chrono::milliseconds, std::size_t>> order;
  order.reserve(references.size());
  for (const TraceReference& reference : references)
    order.emplace_back(reference.time, order.size());
  std::ranges::sort(order);
  std::vector<TraceReference> sorted;
  sorted.reserve(references.size());
  for (const auto& [time, place] : order) sorted.push_back(references[place]);
  references = std::move(sorted);
}

}  // namespace

std::uint32_t TraceBuilder::Names::number(std::string_view name) {
  if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
  const std::uint32_t next = count();
  numbers_.emplace(name, next);
  return next;
}

void TraceBuilder::add(const TraceRow& row) {
  const std::uint64_t size = row.bytes.value_or(0);
  std::uint64_t bytes = 0;
  if (size > kLargestObject || __builtin_add_overflow(bytes_, size, &bytes)) {
    return skip(row.line, fmt::format("a size of {} bytes cannot be", size));
  }
  bytes_ = bytes;
  TraceReference reference;
  reference.artifact = artifacts_.number(row.artifact);
  if (row.consumer) reference.consumer = consumers_.number(*row.consumer);
  if (row.node) reference.node = nodes_.number(*row.node);
  if (row.time) reference.time = *row.time;
  if (row.bytes) reference.bytes = *row.bytes;
  all_have_consumers_ = all_have_consumers_ && row.consumer;
  all_have_nodes_ = all_have_nodes_ && row.node;
  all_have_times_ = all_have_times_ && row.time;
  all_have_sizes_ = all_have_sizes_ && row.bytes;
  trace_.references.push_back(reference);
}

void TraceBuilder::skip(std::uint64_t line, std::string reason) {
  ++trace_.skipped;
  if (trace_.first_skipped.size() < kNamedSkips) {
    constexpr std::size_t kShown = 200;  // bytes: a row may be of any length
    if (reason.size() > kShown) reason.replace(kShown, std::string::npos, "...");
    trace_.first_skipped.push_back({line, std::move(reason)});
  }
}

Trace TraceBuilder::finish() && {
  Trace& trace = trace_;
  if (trace.references.empty()) {
    std::string message = "the trace has no reference that could be read";
    for (const SkippedRow& row : trace.first_skipped) {
      message += fmt::format("{} line {}: {}", &row == trace.first_skipped.data() ? ":" : ";",
                             row.line, row.reason);
    }
    throw Error(Errc::kInvalid, message);
  }
  trace.artifacts = artifacts_.count();
  trace.consumers = all_have_consumers_ ? consumers_.count() : 0;
  trace.nodes = all_have_nodes_ ? nodes_.count() : 0;
  trace.has_times = all_have_times_;
  trace.has_sizes = all_have_sizes_;
  for (TraceReference& reference : trace.references) {
    if (!all_have_consumers_) reference.consumer = 0;
    if (!all_have_nodes_) reference.node = 0;
    if (!all_have_sizes_) reference.bytes = 1;
  }
  if (trace.has_times) sort_by_time(trace.references);
  return std::move(trace);
}

}  // namespace weightfs::policy
