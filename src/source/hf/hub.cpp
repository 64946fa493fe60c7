// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/hub.hpp"

#include "base/error.hpp"
#include "digest/git_blob.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/lfs_pointer.hpp"
#include "source/error_context.hpp"
#include "source/http/range_read.hpp"
#include "source/side_by_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::source {

using snapshot::File;
using snapshot::HubReference;
using snapshot::HubVersion;

namespace {

/// Small files fetched at once. The Hub counts requests, so more of them would only wait.
constexpr std::size_t kMaxFetching = 8;
constexpr std::size_t kMaxListings = 16;
/// Signed URLs that one range may use up: one may have died, one may die under way.
constexpr int kMaxLocations = 3;

bool is_in_lfs(const HubEntry& entry) {
  return entry.sha256 && snapshot::is_lfs_pointer(entry.blob, *entry.sha256, entry.size);
}

/// What a storage service says of a signed URL whose time is over, or that it does not know.
bool may_be_the_url(const Error& error) {
  return error.code() == Errc::kPermission || error.code() == Errc::kNotFound ||
         error.code() == Errc::kInvalid;
}

/// A commit is the same in every repository that has it, but not who may read it.
std::string listing_name(const HubReference& reference, const std::string& commit) {
  HubReference at = reference;
  at.revision = commit;
  return at.text();
}

}  // namespace

Hub::Hub(Web web, HubClient::Options options, HubToken* token)
    : web_(web), client_(web, std::move(options), token) {
}

Hub::ListingPtr Hub::listing(const HubReference& reference, const std::stop_token& stop) {
  return flights_.get(reference.text(), stop, [&] { return find(reference, stop); });
}

Hub::ListingPtr Hub::find(const HubReference& reference, const std::stop_token& stop) {
  const std::string commit =
      reference.is_commit() ? reference.revision : client_.commit(reference, stop);
  const std::string name = listing_name(reference, commit);
  if (auto found = known(name)) return found;

  const std::vector<HubEntry> entries = client_.tree(reference, commit, stop);
  auto listing = std::make_shared<Listing>();
  listing->commit = commit;
  for (const HubEntry& entry : entries) {
    File file;
    file.path = entry.path;
    file.size = entry.size;
    file.sha256 = entry.sha256;
    file.validator = HubVersion{commit, entry.blob}.text();
    listing->files.push_back(std::move(file));
  }
  std::vector<std::size_t> in_git;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].sha256) in_git.push_back(i);
  }
  side_by_side("hub-file", kMaxFetching, in_git.size(), stop,
               [&](std::size_t index, const std::stop_token& end) {
                 const std::size_t i = in_git[index];
                 listing->files[i].sha256 = digest_of(reference, commit, entries[i], end);
               });
  listings_.with([&](auto& listings) {
    listings.emplace_front(name, listing);
    if (listings.size() > kMaxListings) listings.pop_back();
  });
  return listing;
}

Hub::ListingPtr Hub::known(const std::string& name) const {
  return listings_.with([&](const auto& listings) -> ListingPtr {
    const auto found =
        std::ranges::find(listings, name, [](const auto& entry) { return entry.first; });
    return found == listings.end() ? nullptr : found->second;
  });
}

Digest Hub::digest_of(const HubReference& reference, const std::string& commit,
                      const HubEntry& entry, const std::stop_token& stop) {
  if (const auto known = small_files_.digest(entry.blob)) return *known;
  // There is nothing to ask for of an empty file.
  std::string content = entry.size > 0 ? client_.content(reference, commit, entry, stop) : "";
  if (git_blob_id(content) != entry.blob) {
    throw Error(Errc::kCorrupt, snapshot::printable(entry.path) +
                                    ": the Hub sent bytes that do not have their git id");
  }
  return small_files_.add(entry.blob, std::move(content));
}

void Hub::read(const HubReference& reference, const File& file, ByteRange range, GuardedSink& sink,
               const std::stop_token& stop) {
  const HubVersion version = HubVersion::parse(file.validator);
  const HubEntry entry{file.path, file.size, version.blob, file.sha256};
  if (is_in_lfs(entry)) {
    read_in_lfs(reference, version.commit, entry, sink, stop);
    return;
  }
  // A Hub may list one sha256 with two sizes.
  const auto kept = file.sha256 ? small_files_.content(*file.sha256) : nullptr;
  if (kept && kept->size() == file.size) {
    sink.write(range.begin, std::as_bytes(std::span(*kept)).subspan(range.begin, range.size()));
    return;
  }
  const net::Url url = client_.url_of(reference, version.commit, file.path);
  RangeRead(web_.http(),
            {.request = {.url = url.text()},
             .size = file.size,
             .credential = client_.credential_for(url)},
            sink, [](const auto&, const auto&) {})
      .run(stop);
}

void Hub::read_in_lfs(const HubReference& reference, const std::string& commit,
                      const HubEntry& entry, GuardedSink& sink, const std::stop_token& stop) {
  const std::string name = listing_name(reference, commit) + "/" + entry.path;
  for (int used = 1;; ++used) {
    const Locations::Found found = locations_.get(name, stop, [&](const std::stop_token& end) {
      return client_.locate(reference, commit, entry, end);
    });
    try {
      net::Request request{.url = found.location.url.text()};
      if (found.location.signed_elsewhere) request.sent_by = client_.origin();
      RangeRead(web_.http(),
                {.request = std::move(request),
                 .size = entry.size,
                 .credential = client_.credential_for(found.location.url)},
                sink, [](const auto&, const auto&) {})
          .run(stop);
      return;
    } catch (const Error& error) {
      if (sink.failed() || !may_be_the_url(error)) throw;
      locations_.forget(name, found);
      if (used == kMaxLocations) throw;
    }
  }
}

}  // namespace weightfs::source
