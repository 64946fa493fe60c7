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

  const Digest look = Digest::of(etag + "\n" + last_modified);
  const bool replaced = first_.with([&](std::map<std::string, First>& first) {
    if (first.size() >= kMaxObjects) first.clear();
    const First& known = first.try_emplace(object, First{look, *date}).first->second;
    return known.look != look && *modified > known.date;
  });
  if (replaced) {
    throw Error(Errc::kChanged,
                "it was replaced under way, modified " + snapshot::printable(last_modified));
  }
}

void FirstAnswers::forget(const std::string& object) {
  first_.with([&](std::map<std::string, First>& first) { first.erase(object); });
}

}  // namespace weightfs::source
