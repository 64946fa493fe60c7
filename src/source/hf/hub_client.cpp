// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/hub_client.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"
#include "net/http_date.hpp"
#include "net/percent_encoding.hpp"
#include "net/redirect.hpp"
#include "net/retry_policy.hpp"
#include "snapshot/byte_text.hpp"
#include "source/error_context.hpp"
#include "source/hf/signed_url.hpp"
#include "source/http/content_range.hpp"
#include "source/http/status.hpp"

#include <fmt/format.h>

#include <strings.h>
#include <algorithm>
#include <array>
#include <random>
#include <unordered_set>
#include <utility>

namespace weightfs::source {

using snapshot::HubKind;
using snapshot::HubReference;
using std::chrono::steady_clock;

namespace {

constexpr std::uint64_t kMaxInfoBytes = 64 << 20;  // of a repository: it lists its files, too
constexpr std::uint64_t kMaxPageBytes = 32 << 20;
/// A listing that has more is made to take memory, or for ever.
constexpr std::size_t kMaxEntries = 1'000'000;
/// The Hub's pages have a thousand entries. So many of them that are nearly empty are no listing.
constexpr std::size_t kManyPages = 1000;
constexpr std::size_t kFewEntries = 200;
constexpr std::uint64_t kMaxErrorBytes = 64 << 10;
constexpr int kMaxHops = 10;
/// Tries of a question about a repository, where the Hub or the way to it fails.
constexpr unsigned kMaxTries = 5;

/// Hosts that are one Hub, whatever redirects between them.
constexpr std::array<std::string_view, 3> kHubHosts = {"huggingface.co", "hf.co",
                                                       "hub-ci.huggingface.co"};

bool is_hub_host(const net::Origin& origin) {
  return origin.scheme == "https" && std::ranges::find(kHubHosts, origin.host) != kHubHosts.end();
}

std::string_view prefix(HubKind kind) {
  return kind == HubKind::kDataset ? "datasets/" : kind == HubKind::kSpace ? "spaces/" : "";
}

std::string_view api_word(HubKind kind) {
  return kind == HubKind::kDataset ? "datasets" : kind == HubKind::kSpace ? "spaces" : "models";
}

/// Unquoted, and without the mark of a weak one.
std::string plain_etag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"')
    etag = etag.substr(1, etag.size() - 2);
  return etag;
}

void check_same(const net::ResponseHead& head, const HubEntry& entry, const std::string& commit) {
  if (const auto found = head.header("x-repo-commit"); found && *found != commit) {
    throw Error(Errc::kChanged, "the Hub answers for commit " + snapshot::printable(*found));
  }
  if (const auto size = head.header("x-linked-size")) {
    if (parse_length(*size) != entry.size) {
      throw Error(Errc::kChanged, fmt::format("the Hub now gives its size as {}, and listed {}",
                                              snapshot::printable(*size), entry.size));
    }
  }
  const auto digest = Digest::parse(plain_etag(head.header("x-linked-etag").value_or("")));
  if (digest && entry.sha256 && digest != entry.sha256) {
    throw Error(Errc::kChanged, "the Hub now gives another sha256 than it listed");
  }
}

}  // namespace

HubClient::HubClient(Web web, Options options, HubToken* token)
    : web_(web),
      options_(std::move(options)),
      endpoint_(net::Url::parse(options_.endpoint)),
      token_(token) {
}

std::string HubClient::commit(const HubReference& reference, const std::stop_token& stop) {
  const net::Url url = api(reference, "/revision/" + net::percent_encode(reference.revision));
  const HubQuestion asked = question(reference, reference.revision, "");
  const Answer answer = ask(url, kMaxInfoBytes, asked, api_gate_, stop);
  try {
    return parse_commit(answer.body);
  } catch (...) {
    rethrow_with(url.display());
  }
}

std::vector<HubEntry> HubClient::tree(const HubReference& reference, const std::string& commit,
                                      const std::stop_token& stop) {
  const HubQuestion asked = question(reference, commit, "");
  std::vector<HubEntry> entries;
  std::unordered_set<std::string> paths;
  std::size_t listed = 0;  // directories, too
  net::Url url = api(reference, "/tree/" + commit + "?recursive=true&expand=false");
  for (std::size_t pages = 1;; ++pages) {
    const Answer answer = ask(url, kMaxPageBytes, asked, api_gate_, stop);
    try {
      TreePage page = parse_tree_page(answer.body);
      listed += page.entries;
      for (HubEntry& entry : page.files) {
        if (!paths.insert(entry.path).second) {
          throw Error(Errc::kInvalid, "lists " + snapshot::printable(entry.path) + " twice");
        }
        entries.push_back(std::move(entry));
      }
      if (listed > kMaxEntries || (pages > kManyPages && listed < pages * kFewEntries)) {
        throw Error(Errc::kInvalid, "its tree does not end");
      }
      const auto next = next_link(answer.head.header("link").value_or(""));
      if (!next) return entries;
      url = at_endpoint(url.resolve(*next));
    } catch (...) {
      rethrow_with(url.display());
    }
  }
}

std::string HubClient::content(const HubReference& reference, const std::string& commit,
                               const HubEntry& entry, const std::stop_token& stop) {
  // What is not the file may be longer: an error, and what it says.
  const std::uint64_t limit = std::max(entry.size, kMaxErrorBytes);
  const Answer answer = ask(url_of(reference, commit, entry.path), limit,
                            question(reference, commit, entry.path), resolver_gate_, stop);
  try {
    check_encoding(answer.head);
    if (answer.body.size() != entry.size) {
      throw Error(Errc::kInvalid, fmt::format("has {} bytes, and was listed with {}",
                                              answer.body.size(), entry.size));
    }
  } catch (...) {
    rethrow_with(snapshot::printable(entry.path));
  }
  return answer.body;
}

HubLocation HubClient::locate(const HubReference& reference, const std::string& commit,
                              const HubEntry& entry, const std::stop_token& stop) {
  const HubQuestion asked = question(reference, commit, entry.path);
  if (const auto left = resolver_gate_.closed_for()) {
    throw TransientError(Errc::kUnavailable, asked.repository + ": the Hub wants fewer requests",
                         *left);
  }
  net::Url url = url_of(reference, commit, entry.path);
  net::Method method = net::Method::kHead;
  for (int hop = 0; hop < kMaxHops; ++hop) {
    const net::ResponseHead head = head_of(method, url, stop);
    resolver_gate_.heard(head);
    if (head.status == 405 || head.status == 501) {
      if (method == net::Method::kGet) throw_answer(head, asked);
      method = net::Method::kGet;
      continue;
    }
    const bool redirects = net::is_redirect(head.status);
    if (!redirects && head.status != 200 && head.status != 206) throw_answer(head, asked);
    check_same(head, entry, commit);
    if (!redirects) return {.url = url, .signed_elsewhere = false, .lifetime = {}};
    const net::Url to = net::follow_redirect({url, {}}, head.header("location").value_or("")).url;
    if (to.origin() == url.origin() || (is_hub_host(url.origin()) && is_hub_host(to.origin()))) {
      url = to;
      continue;
    }
    const auto date = net::parse_http_date(head.header("date").value_or(""));
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    return {
        .url = to, .signed_elsewhere = true, .lifetime = lifetime(to.query(), date.value_or(now))};
  }
  throw Error(Errc::kInvalid,
              fmt::format("{}: the Hub redirects more than {} times", asked.repository, kMaxHops));
}

/// Of whatever comes, a redirect too; a body is not waited for.
net::ResponseHead HubClient::head_of(net::Method method, const net::Url& url,
                                     const std::stop_token& stop) {
  struct HeadIsEnough {};
  const Credential credential = credential_for(url);
  net::Request request{.method = method,
                       .url = url.text(),
                       .headers = credential.headers,
                       .max_redirects = 0,
                       .tls = credential.tls};
  if (method == net::Method::kGet) request.range = {0, 0};
  net::ResponseHead head;
  try {
    return web_.http().perform(
        request, [&](const net::ResponseHead& found) { head = found; },
        [](auto) { throw HeadIsEnough(); }, stop);
  } catch (const HeadIsEnough&) {
    return head;
  }
}

net::Url HubClient::url_of(const HubReference& reference, const std::string& commit,
                           const std::string& path) const {
  return net::Url::parse(fmt::format("{}/{}{}/resolve/{}/{}", options_.endpoint,
                                     prefix(reference.kind), reference.repository, commit,
                                     net::percent_encode_path(path)));
}

Credential HubClient::credential_for(const net::Url& url) const {
  if (url.origin() != endpoint_.origin()) return {};
  Credential credential = web_.credential(endpoint_);
  const bool authorized = std::ranges::any_of(credential.headers, [](const auto& header) {
    return ::strcasecmp(header.first.c_str(), "authorization") == 0;
  });
  if (authorized || token_ == nullptr) return credential;
  if (const auto token = token_->current()) {
    credential.headers.emplace_back("Authorization", "Bearer " + *token);
    credential.origin = token_->origin();
  }
  return credential;
}

HubQuestion HubClient::question(const HubReference& reference, const std::string& revision,
                                const std::string& path) const {
  const Credential credential = credential_for(endpoint_);
  return {.repository = std::string(prefix(reference.kind)) + reference.repository,
          .revision = revision,
          .path = path,
          .token_origin = credential.headers.empty() ? "" : credential.origin};
}

HubClient::Answer HubClient::ask(const net::Url& url, std::uint64_t limit,
                                 const HubQuestion& question, RateGate& gate,
                                 const std::stop_token& stop) {
  const auto deadline = steady_clock::now() + options_.patience;
  std::mt19937_64 random{std::random_device{}()};
  for (unsigned tries = 1;;) {
    if (!gate.pass(deadline, stop)) {
      if (stop.stop_requested()) throw Error(Errc::kCancelled, "cancelled");
      throw TransientError(
          Errc::kUnavailable,
          question.repository + ": the Hub wants no more requests for a longer time than there is",
          gate.closed_for());
    }
    try {
      const Credential credential = credential_for(url);
      auto [head, body] = web_.http().fetch(
          {.url = url.text(), .headers = credential.headers, .tls = credential.tls}, limit, stop);
      gate.heard(head);
      if (head.status == 200) return {std::move(head), std::move(body)};
      if (head.status == 429) continue;  // as often as the deadline lets it
      throw_answer(head, question);
    } catch (const TransientError& error) {
      if (tries == kMaxTries) throw;
      constexpr std::chrono::milliseconds kFirstDelay{500};
      pause(stop,
            net::retry_delay({.first_delay = kFirstDelay}, tries++, error.retry_after(), random));
      if (stop.stop_requested()) throw;
    }
  }
}

net::Url HubClient::api(const HubReference& reference, const std::string& rest) const {
  return net::Url::parse(fmt::format("{}/api/{}/{}{}", options_.endpoint, api_word(reference.kind),
                                     reference.repository, rest));
}

/// A mirror passes on links that name the Hub which it is a mirror of.
net::Url HubClient::at_endpoint(const net::Url& url) const {
  if (url.origin() == endpoint_.origin()) return url;
  const net::Origin& origin = endpoint_.origin();
  return net::Url::parse(fmt::format("{}://{}{}{}{}", origin.scheme, origin.authority(), url.path(),
                                     url.query().empty() ? "" : "?", url.query()));
}

}  // namespace weightfs::source
