// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/http_source.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "source/error_context.hpp"
#include "source/guarded_sink.hpp"
#include "source/http/listing.hpp"
#include "source/http/object_info.hpp"
#include "source/http/range_read.hpp"
#include "source/http/validator.hpp"

#include <functional>
#include <utility>
#include <vector>

namespace weightfs::source {

namespace {

std::string name_of_one_file(const net::Url& url) {
  if (!url.path().ends_with('/')) return file_name_of(url);
  if (!url.query().empty()) {
    throw Error(Errc::kInvalid, url.display() + " is a directory and takes no query");
  }
  return "";
}

/// What a first answer is remembered by.
std::string object_of(const snapshot::File& file) {
  return (file.sha256 ? file.sha256->hex() : "") + file.path;
}

}  // namespace

HttpSource::HttpSource(const snapshot::Reference& reference, Web web)
    : reference_(reference.text()),
      url_(net::Url::parse(reference_)),
      file_name_(name_of_one_file(url_)),
      web_(web) {
}

snapshot::Snapshot HttpSource::resolve(std::stop_token stop) {
  if (!is_directory()) return {reference_, "", {describe_file(stop)}};
  Listing listing = list_directory(web_, url_, stop);
  try {
    return {reference_, "", std::move(listing.files)};
  } catch (...) {
    rethrow_with(listing.document);
  }
}

snapshot::File HttpSource::describe_file(const std::stop_token& stop) const {
  try {
    const ObjectInfo info = ask_about(web_, url_, stop);
    return {.path = file_name_,
            .size = info.validator.length,
            .mtime = info.mtime,
            .validator = info.validator.text()};
  } catch (...) {
    rethrow_with(url_.display());
  }
}

void HttpSource::begin_afresh(const snapshot::File& file) {
  first_answers_.forget(object_of(file));
}

void HttpSource::read(const snapshot::File& file, ByteRange range, Sink& sink,
                      std::stop_token stop) {
  const std::string what = snapshot::printable(file.path) + " bytes " +
                           std::to_string(range.begin) + "-" + std::to_string(range.end - 1) +
                           " from " + describe();
  GuardedSink guarded(sink, range);
  try {
    const net::Url url = is_directory() ? url_of(url_, file.path) : url_;
    net::Request request{.url = url.text()};
    std::function<void(const net::ResponseHead&)> check_version;
    if (file.validator.empty()) {
      check_version = [this, object = object_of(file)](const net::ResponseHead& head) {
        first_answers_.check(object, head);
      };
    } else {
      const Validator validator = Validator::parse(file.validator);
      if (const auto header = validator.precondition()) request.headers.push_back(*header);
      check_version = [validator](const net::ResponseHead& head) {
        if (const auto difference = validator.difference(head)) {
          throw Error(Errc::kChanged, *difference);
        }
      };
    }
    const auto on_answer = [&](const net::ResponseHead& head, const RangedAnswer& answer) {
      check_version(head);
      // Asked for all of it, a server shows neither.
      if (range.size() < file.size) ignores_ranges_ = answer.kind == RangedAnswer::Kind::kWhole;
    };
    RangeRead(
        web_.http(),
        {.request = std::move(request), .size = file.size, .credential = web_.credential(url)},
        guarded, on_answer)
        .run(stop);
  } catch (...) {
    if (guarded.failed()) throw;
    rethrow_with(what);
  }
}

std::optional<Fd> HttpSource::open_local(const snapshot::File& /*file*/) {
  return std::nullopt;
}

std::string HttpSource::describe() const {
  return url_.origin().authority();
}

}  // namespace weightfs::source
