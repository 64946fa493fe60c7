// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/hf_source.hpp"

#include "snapshot/byte_text.hpp"
#include "source/error_context.hpp"
#include "source/guarded_sink.hpp"

#include <fmt/format.h>

#include <utility>

namespace weightfs::source {

HfSource::HfSource(const snapshot::Reference& reference, std::shared_ptr<Hub> hub)
    : reference_(reference.text()),
      repository_(snapshot::HubReference::parse(reference)),
      hub_(std::move(hub)) {
}

snapshot::Snapshot HfSource::resolve(std::stop_token stop) {
  const Hub::ListingPtr listing = hub_->listing(repository_, stop);
  return {reference_, listing->commit, listing->files};
}

void HfSource::read(const snapshot::File& file, ByteRange range, Sink& sink, std::stop_token stop) {
  GuardedSink guarded(sink, range);
  try {
    hub_->read(repository_, file, range, guarded, stop);
  } catch (...) {
    if (guarded.failed()) throw;
    rethrow_with(fmt::format("{} bytes {}-{} of {} from {}", snapshot::printable(file.path),
                             range.begin, range.end - 1, repository_.repository, describe()));
  }
}

std::optional<Fd> HfSource::open_local(const snapshot::File& /*file*/) {
  return std::nullopt;
}

std::string HfSource::describe() const {
  return hub_->host();
}

}  // namespace weightfs::source
