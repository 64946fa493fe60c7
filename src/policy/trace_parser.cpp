// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "policy/trace_parser.hpp"

#include "base/error.hpp"
#include "policy/event_rows.hpp"
#include "policy/oracle_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::policy {

namespace {

constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd";

/// A byte that no text has. In the last number of an oracleGeneral record there is always one: it
/// is small, or -1, or the largest of all.
bool is_binary(char c) {
  return c == '\0' || c == '\xff';
}

}  // namespace

TraceParser::Format TraceParser::format_of(std::string_view beginning) {
  if (beginning.starts_with(kZstd)) {
    throw Error(Errc::kUnsupported,
                "the trace is compressed with zstd: give it as zstd -dc has it");
  }
  if (std::ranges::any_of(beginning.substr(0, kOracleRecord), is_binary)) return Format::kOracle;
  return beginning.starts_with('{') ? Format::kEvents : Format::kCsv;
}

void TraceParser::feed(std::string_view bytes) {
  if (format_ == Format::kUnknown) {
    if (rest_.size() + bytes.size() < kOracleRecord) {
      rest_ += bytes;
      return;
    }
    format_ = format_of(rest_ + std::string(bytes.substr(0, kOracleRecord)));
  }
  if (rest_.empty()) {
    rest_ = read(bytes);
  } else {
    rest_ += bytes;
    rest_.erase(0, rest_.size() - read(rest_).size());
  }
  if (rest_.size() > kLongestLine) {
    throw Error(Errc::kInvalid,
                fmt::format("line {} is longer than a trace's can be", number_ + 1));
  }
}

Trace TraceParser::finish() && {
  if (format_ == Format::kUnknown) {
    format_ = format_of(rest_);
    rest_.erase(0, rest_.size() - read(rest_).size());
  }
  if (!rest_.empty() && format_ == Format::kOracle) {
    trace_.skip(number_ + 1, "is cut off");
  } else if (!rest_.empty()) {
    read_line(rest_);
  }
  return std::move(trace_).finish();
}

std::string_view TraceParser::read(std::string_view bytes) {
  return format_ == Format::kOracle ? read_records(bytes) : read_lines(bytes);
}

std::string_view TraceParser::read_lines(std::string_view bytes) {
  for (std::size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos;) {
    read_line(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
  return bytes;
}

std::string_view TraceParser::read_records(std::string_view bytes) {
  for (; bytes.size() >= kOracleRecord; bytes.remove_prefix(kOracleRecord)) {
    ++number_;
    read_oracle_record(bytes.substr(0, kOracleRecord), number_, trace_);
  }
  return bytes;
}

void TraceParser::read_line(std::string_view line) {
  ++number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (format_ == Format::kEvents) {
    read_event(line, number_, trace_);
  } else if (csv_) {
    csv_->read(line, number_, trace_);
  } else {
    csv_.emplace(line, columns_);
  }
}

}  // namespace weightfs::policy
