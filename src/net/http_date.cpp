// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/http_date.hpp"

#include <array>

namespace weightfs::net {

namespace {

/// Takes one date apart from the front. Once something does not fit, `failed` stays set.
struct Cursor {
  std::string_view rest;
  bool failed = false;

  void expect(std::string_view literal) {
    if (rest.starts_with(literal)) {
      rest.remove_prefix(literal.size());
    } else {
      failed = true;
    }
  }
  int number(std::size_t digits) {
    if (rest.size() < digits) failed = true;
    int value = 0;
    for (std::size_t i = 0; !failed && i < digits; ++i) {
      if (rest[i] < '0' || rest[i] > '9') failed = true;
      value = value * 10 + (rest[i] - '0');
    }
    if (!failed) rest.remove_prefix(digits);
    return value;
  }
  /// 1 to 12.
  unsigned month() {
    constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    for (unsigned i = 0; i < kMonths.size(); ++i) {
      if (rest.starts_with(kMonths[i])) {
        rest.remove_prefix(3);
        return i + 1;
      }
    }
    failed = true;
    return 1;
  }
};

struct Fields {
  int year = 0;
  unsigned month = 1;
  int day = 1;
  std::chrono::seconds time{0};
};

std::chrono::seconds time_of_day(Cursor& cursor) {
  const int hour = cursor.number(2);
  cursor.expect(":");
  const int minute = cursor.number(2);
  cursor.expect(":");
  const int second = cursor.number(2);
  if (hour > 23 || minute > 59 || second > 60) cursor.failed = true;
  return std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second);
}

/// " 06 Nov 1994 08:49:37 GMT", what follows the comma.
Fields imf_fixdate(Cursor& cursor) {
  Fields fields;
  cursor.expect(" ");
  fields.day = cursor.number(2);
  cursor.expect(" ");
  fields.month = cursor.month();
  cursor.expect(" ");
  fields.year = cursor.number(4);
  cursor.expect(" ");
  fields.time = time_of_day(cursor);
  cursor.expect(" GMT");
  return fields;
}

/// " 06-Nov-94 08:49:37 GMT". Nothing on the web is older than 1970.
Fields rfc850_date(Cursor& cursor) {
  Fields fields;
  cursor.expect(" ");
  fields.day = cursor.number(2);
  cursor.expect("-");
  fields.month = cursor.month();
  cursor.expect("-");
  const int year = cursor.number(2);
  fields.year = year < 70 ? 2000 + year : 1900 + year;
  cursor.expect(" ");
  fields.time = time_of_day(cursor);
  cursor.expect(" GMT");
  return fields;
}

/// " Nov  6 08:49:37 1994", what follows the day's name.
Fields asctime_date(Cursor& cursor) {
  Fields fields;
  cursor.expect(" ");
  fields.month = cursor.month();
  cursor.expect(" ");
  if (cursor.rest.starts_with(" ")) {
    cursor.expect(" ");
    fields.day = cursor.number(1);
  } else {
    fields.day = cursor.number(2);
  }
  cursor.expect(" ");
  fields.time = time_of_day(cursor);
  cursor.expect(" ");
  fields.year = cursor.number(4);
  return fields;
}

}  // namespace

std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text) {
  const std::size_t comma = text.find(',');
  Cursor cursor{.rest = text};
  Fields fields;
  if (comma == 3) {
    cursor.rest.remove_prefix(comma + 1);
    fields = imf_fixdate(cursor);
  } else if (comma != std::string_view::npos) {
    cursor.rest.remove_prefix(comma + 1);
    fields = rfc850_date(cursor);
  } else {
    if (text.size() < 3) return std::nullopt;
    cursor.rest.remove_prefix(3);
    fields = asctime_date(cursor);
  }
  const std::chrono::year_month_day day(std::chrono::year(fields.year),
                                        std::chrono::month(fields.month),
                                        std::chrono::day(static_cast<unsigned>(fields.day)));
  if (cursor.failed || !cursor.rest.empty() || !day.ok()) return std::nullopt;
  return std::chrono::sys_days(day) + fields.time;
}

}  // namespace weightfs::net
