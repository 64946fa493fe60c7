// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/http_client.hpp"
#include "net/url.hpp"
#include "snapshot/hub_reference.hpp"
#include "source/hf/hub_answer.hpp"
#include "source/hf/hub_token.hpp"
#include "source/hf/hub_tree.hpp"
#include "source/hf/rate_gate.hpp"
#include "source/web.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace weightfs::source {

/// Where the bytes of a file are to be had.
struct HubLocation {
  net::Url url;
  bool signed_elsewhere = false;                 ///< at another host, which must not get the token
  std::optional<std::chrono::seconds> lifetime;  ///< from now on
};

/// The requests of the Hub's API, to one endpoint. Answers about repositories are waited for as
/// long as the Hub asks to (429), for up to `patience`; those about the place of a file are not,
/// as a reader waits who has other ways to wait. The token goes to the endpoint's own origin alone,
/// and so do the credentials for the endpoint, in place of the token where they are one.
///
/// Thread-safe. What `web` refers to and `token` must outlive it. Errors: throw_answer's,
/// HttpClient's.
class HubClient {
 public:
  struct Options {
    std::string endpoint;
    std::chrono::milliseconds patience{std::chrono::minutes(15)};
  };
  /// `token`: null where this endpoint gets none.
  HubClient(Web web, Options options, HubToken* token);

  /// The commit that the revision is now.
  [[nodiscard]] std::string commit(const snapshot::HubReference& reference,
                                   const std::stop_token& stop);
  /// All files of a commit.
  [[nodiscard]] std::vector<HubEntry> tree(const snapshot::HubReference& reference,
                                           const std::string& commit, const std::stop_token& stop);
  /// The content of a small file, which must have this size.
  [[nodiscard]] std::string content(const snapshot::HubReference& reference,
                                    const std::string& commit, const HubEntry& entry,
                                    const std::stop_token& stop);
  /// Where a file in LFS is. Error(kChanged) where the Hub has another size or digest for it.
  [[nodiscard]] HubLocation locate(const snapshot::HubReference& reference,
                                   const std::string& commit, const HubEntry& entry,
                                   const std::stop_token& stop);

  /// Of a file, for a GET that follows redirects.
  [[nodiscard]] net::Url url_of(const snapshot::HubReference& reference, const std::string& commit,
                                const std::string& path) const;
  /// Who we are there: somebody where the URL is the endpoint's own.
  [[nodiscard]] Credential credential_for(const net::Url& url) const;
  /// What an answer about this file is about.
  [[nodiscard]] HubQuestion question(const snapshot::HubReference& reference,
                                     const std::string& revision, const std::string& path) const;
  [[nodiscard]] const net::Origin& origin() const noexcept { return endpoint_.origin(); }
  [[nodiscard]] std::string host() const { return endpoint_.origin().authority(); }

 private:
  struct Answer {
    net::ResponseHead head;
    std::string body;
  };
  Answer ask(const net::Url& url, std::uint64_t limit, const HubQuestion& question, RateGate& gate,
             const std::stop_token& stop);
  net::ResponseHead head_of(net::Method method, const net::Url& url, const std::stop_token& stop);
  [[nodiscard]] net::Url api(const snapshot::HubReference& reference,
                             const std::string& rest) const;
  [[nodiscard]] net::Url at_endpoint(const net::Url& url) const;

  const Web web_;
  const Options options_;
  const net::Url endpoint_;
  HubToken* const token_;
  RateGate api_gate_;       ///< the Hub counts these requests ...
  RateGate resolver_gate_;  ///< ... and these on their own
};

}  // namespace weightfs::source
