// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/first_answers.hpp"

#include "base/error.hpp"
#include "net/http_date.hpp"
#include "snapshot/byte_text.hpp"

namespace weightfs::source {

namespace {

/// Objects under way at one time are far fewer; forgetting only makes the check start afresh.
constexpr std::size_t kMaxObjects = 4096;

}  // namespace

void FirstAnswers::check(const std::string& object, const net::ResponseHead& head) {
  const std::string etag = head.header("etag").value_or("");
  const std::string last_modified = head.header("last-modified").value_or("");
  const auto date = net::parse_http_date(head.header("date").value_or(""));
  const auto modified = net::parse_http_date(last_modified);
  if (!date || !modified) return;

  const bool replaced = first_.with([&](std::map<std::string, First>& first) {
    if (first.size() >= kMaxObjects) first.clear();
    const auto [known, is_first] = first.try_emplace(object, First{etag, last_modified, *date});
    if (is_first || (known->second.etag == etag && known->second.last_modified == last_modified) ||
        *modified <= known->second.date) {
      return false;
    }
    first.erase(known);
    return true;
  });
  if (replaced) {
    throw Error(Errc::kChanged,
                "it was replaced under way, modified " + snapshot::printable(last_modified));
  }
}

}  // namespace weightfs::source
