// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/end_argument.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "base/timestamp.hpp"
#include "cli/exit_code.hpp"

namespace weightfs::cli {

namespace {

constexpr std::chrono::hours kLongest{24 * 365 * 100};

std::int64_t end_of(const EndArgument& end, std::chrono::system_clock::time_point now) {
  if (end.duration.empty()) return parse_timestamp(end.until);
  const std::chrono::milliseconds duration = parse_duration(end.duration);
  if (duration.count() <= 0) throw Error(Errc::kInvalid, "--for must be longer than nothing");
  if (duration > kLongest) throw Error(Errc::kInvalid, end.duration + " is too long");
  return std::chrono::ceil<std::chrono::seconds>(now.time_since_epoch() + duration).count();
}

}  // namespace

std::string end_argument(const EndArgument& end, std::chrono::system_clock::time_point now) {
  if (end.until.empty() && end.duration.empty()) return "";
  if (!end.until.empty() && !end.duration.empty()) {
    throw UsageError("--until and --for are two ways to say the same: give one");
  }
  try {
    return show_timestamp(end_of(end, now));
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace weightfs::cli
