// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/csv_rows.hpp"

#include "base/error.hpp"
#include "policy/trace_number.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <span>

namespace weightfs::policy {

namespace {

using Unit = std::optional<double> (*)(std::string_view);

constexpr std::string_view kTimeNames[] = {"time", "ts", "timestamp", "t"};
constexpr std::string_view kArtifactNames[] = {"artifact", "model",     "snapshot", "object",
                                               "obj_id",   "object_id", "key",      "id"};
constexpr std::string_view kConsumerNames[] = {"consumer", "user", "job", "pod", "client"};
constexpr std::string_view kNodeNames[] = {"node", "host", "machine"};
constexpr std::string_view kSizeNames[] = {"size", "bytes", "obj_size", "object_size"};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The unit that "ts_ms" or "disk_gib" ends with.
std::optional<double> unit_of_ending(std::string_view column, Unit unit) {
  const std::size_t at = column.rfind('_');
  return unit == nullptr || at == std::string_view::npos ? std::nullopt
                                                         : unit(lower(column.substr(at + 1)));
}

/// `column` is `name`, or `name` with a unit as its ending.
bool is_named(std::string_view column, std::string_view name, Unit unit) {
  const std::string text = lower(column);
  if (text == name) return true;
  return text.size() > name.size() && text.starts_with(name) && text[name.size()] == '_' &&
         unit != nullptr && unit(std::string_view(text).substr(name.size() + 1)).has_value();
}

}  // namespace

struct CsvRows::Kind {
  std::string_view option;
  std::span<const std::string_view> names;
  Unit unit = nullptr;
  double default_unit = 1;
};

const CsvRows::Kind CsvRows::kTime{"time", kTimeNames, time_unit, 1000};
const CsvRows::Kind CsvRows::kArtifact{"artifact", kArtifactNames};
const CsvRows::Kind CsvRows::kConsumer{"consumer", kConsumerNames};
const CsvRows::Kind CsvRows::kNode{"node", kNodeNames};
const CsvRows::Kind CsvRows::kSize{"size", kSizeNames, size_unit};

CsvRows::CsvRows(std::string_view header, const CsvColumns& columns) {
  if (header.starts_with("\xef\xbb\xbf")) header.remove_prefix(3);  // a byte order mark
  for (const char candidate : {'\t', ';'}) {
    if (std::ranges::count(header, candidate) > std::ranges::count(header, separator_)) {
      separator_ = candidate;
    }
  }
  split(header);
  time_ = find(kTime, columns.time);
  artifact_ = find(kArtifact, columns.artifact);
  consumer_ = find(kConsumer, columns.consumer);
  node_ = find(kNode, columns.node);
  size_ = find(kSize, columns.size);
  if (!artifact_) {
    throw Error(Errc::kInvalid, "which column is the artifact? Say --artifact COLUMN; there are: " +
                                    shown_columns());
  }
  for (const auto& field : {time_, artifact_, consumer_, node_, size_}) {
    if (field) least_ = std::max(least_, field->place + 1);
  }
}

std::optional<CsvRows::Field> CsvRows::find(const Kind& kind, const std::string& given) const {
  const auto header = std::span(cells_).first(count_);
  const auto field = [&](std::size_t place) {
    return Field{.place = place,
                 .unit = unit_of_ending(header[place], kind.unit).value_or(kind.default_unit)};
  };
  if (given.empty()) {
    for (const std::string_view name : kind.names) {
      for (std::size_t i = 0; i < header.size(); ++i) {
        if (is_named(header[i], name, kind.unit)) return field(i);
      }
    }
    return std::nullopt;
  }
  if (const auto exact = std::ranges::find(header, given); exact != header.end()) {
    return field(static_cast<std::size_t>(exact - header.begin()));
  }
  const std::size_t colon = given.rfind(':');
  const auto place = std::ranges::find(header, given.substr(0, colon));
  if (place == header.end()) {
    throw Error(Errc::kInvalid, fmt::format("--{}: there is no column '{}'; there are: {}",
                                            kind.option, given, shown_columns()));
  }
  const std::string unit = given.substr(colon + 1);
  const auto factor = kind.unit == nullptr ? std::nullopt : kind.unit(unit);
  if (!factor) {
    throw Error(Errc::kInvalid, fmt::format("--{}: '{}' is not a unit of it", kind.option, unit));
  }
  return Field{.place = static_cast<std::size_t>(place - header.begin()), .unit = *factor};
}

/// As long as a person reads: what is no CSV has headers of any length.
std::string CsvRows::shown_columns() const {
  constexpr std::size_t kShown = 500;
  std::string text = fmt::format("{}", fmt::join(std::span(cells_).first(count_), ", "));
  if (text.size() > kShown) text.replace(kShown, std::string::npos, "...");
  return text;
}

void CsvRows::read(std::string_view line, std::uint64_t number, TraceBuilder& trace) {
  if (line.empty()) return;
  split(line);
  if (count_ < least_) {
    trace.skip(number, fmt::format("has {} fields, and {} are needed", count_, least_));
    return;
  }
  TraceRow row{.line = number, .artifact = cell(*artifact_)};
  if (row.artifact.empty()) {
    trace.skip(number, "has no artifact");
    return;
  }
  if (consumer_) row.consumer = cell(*consumer_);
  if (node_) row.node = cell(*node_);
  if (time_ && !(row.time = trace_time(cell(*time_), time_->unit))) {
    trace.skip(number, fmt::format("'{}' is not a time", cell(*time_)));
    return;
  }
  if (size_ && !(row.bytes = trace_size(cell(*size_), size_->unit))) {
    trace.skip(number, fmt::format("'{}' is not a size", cell(*size_)));
    return;
  }
  trace.add(row);
}

void CsvRows::split(std::string_view line) {
  count_ = 0;
  bool more = true;
  while (more) {
    if (cells_.size() == count_) cells_.emplace_back();
    std::string& cell = cells_[count_++];
    cell.clear();
    if (line.starts_with('"')) {
      // A quote inside of quotes is doubled.
      for (line.remove_prefix(1); !line.empty(); line.remove_prefix(1)) {
        if (line.front() == '"') {
          if (!line.starts_with("\"\"")) break;
          line.remove_prefix(1);
        }
        cell += line.front();
      }
      if (!line.empty()) line.remove_prefix(1);
    }
    const std::size_t end = std::min(line.find(separator_), line.size());
    cell += line.substr(0, end);
    more = end < line.size();
    line.remove_prefix(std::min(end + 1, line.size()));
  }
}

}  // namespace weightfs::policy
