// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "base/single_flight.hpp"
#include "base/synchronized.hpp"
#include "snapshot/file.hpp"
#include "snapshot/hub_reference.hpp"
#include "source/guarded_sink.hpp"
#include "source/hf/hub_client.hpp"
#include "source/hf/hub_token.hpp"
#include "source/hf/locations.hpp"
#include "source/hf/small_files.hpp"
#include "source/web.hpp"

#include <list>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace weightfs::source {

/// One Hub, for all sources that are repositories of it: what was found out about a repository is
/// known to every model that shows it, and the same question is asked once, by however many.
///
/// Thread-safe. What `web` refers to and `token` must outlive it.
class Hub {
 public:
  /// The files of one commit, every one with its sha256.
  struct Listing {
    std::string commit;
    std::vector<snapshot::File> files;
  };
  using ListingPtr = std::shared_ptr<const Listing>;

  Hub(Web web, HubClient::Options options, HubToken* token);

  /// What the reference means now. What a repository keeps in git itself has no sha256 there: it
  /// is fetched, compared with git's own id and hashed. Errors: HubClient's.
  [[nodiscard]] ListingPtr listing(const snapshot::HubReference& reference,
                                   const std::stop_token& stop);
  /// As Source::read, with what goes wrong at the sink left to `sink`.
  void read(const snapshot::HubReference& reference, const snapshot::File& file, ByteRange range,
            GuardedSink& sink, const std::stop_token& stop);
  [[nodiscard]] std::string host() const { return client_.host(); }

 private:
  ListingPtr find(const snapshot::HubReference& reference, const std::stop_token& stop);
  [[nodiscard]] ListingPtr known(const std::string& commit) const;
  Digest digest_of(const snapshot::HubReference& reference, const std::string& commit,
                   const HubEntry& entry, const std::stop_token& stop);
  void read_in_lfs(const snapshot::HubReference& reference, const std::string& commit,
                   const HubEntry& entry, GuardedSink& sink, const std::stop_token& stop);

  const Web web_;
  HubClient client_;
  SmallFiles small_files_;
  Locations locations_;
  Synchronized<std::list<std::pair<std::string, ListingPtr>>> listings_;  ///< newest first
  SingleFlight<std::string, ListingPtr> flights_;                         ///< by reference
};

}  // namespace weightfs::source
