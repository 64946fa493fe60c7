// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/credentials.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "source/error_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::source {

namespace {

/// As one word, which tokens are, or with blanks inside.
enum class Blanks { kAllowed, kNone };

std::string checked(std::string text, Blanks blanks) {
  const char first = blanks == Blanks::kAllowed ? ' ' : '!';
  if (!std::ranges::all_of(text, [first](char c) { return c >= first && c <= '~'; })) {
    throw Error(Errc::kInvalid, "has a character in it that no header can have: it is not sent");
  }
  return text;
}

/// Another one when one of the files is replaced, though it has the same name.
std::string version_of(const net::TlsIdentity& tls) {
  std::string version;
  for (const std::string& file : {tls.certificate, tls.key, tls.ca_bundle}) {
    if (!file.empty()) version += FileMark::of(file).text() + " ";
  }
  return version;
}

}  // namespace

Credentials::Credentials(Options options, Log log)
    : options_(std::move(options)), log_(std::move(log)), file_(options_.file) {
}

Credential Credentials::of(const net::Url& url) {
  if (options_.file.empty()) return {};
  const EntriesPtr entries = this->entries();
  const CredentialEntry* best = nullptr;
  for (const CredentialEntry& entry : *entries) {
    const bool longer = best == nullptr || entry.url.path().size() > best->url.path().size();
    if (longer && entry.is_for(url)) best = &entry;
  }
  if (best == nullptr) return {};
  try {
    Credential credential{.headers = headers_of(*best), .tls = best->tls, .origin = {}};
    credential.tls.version = version_of(best->tls);
    if (!credential.headers.empty() || !credential.tls.certificate.empty()) {
      credential.origin = fmt::format("{} (for {})", options_.file.string(), best->url.display());
    }
    return credential;
  } catch (...) {
    rethrow_with(fmt::format("credentials for {}", best->url.display()));
  }
}

std::vector<std::filesystem::path> Credentials::files() {
  if (options_.file.empty()) return {};
  std::vector<std::filesystem::path> files = {options_.file};
  if (!FileMark::of(options_.file).exists()) {
    throw Error(Errc::kNotFound,
                fmt::format("credentials: there is no {}", options_.file.string()));
  }
  const EntriesPtr entries = this->entries();
  for (const CredentialEntry& entry : *entries) {
    if (entry.secret.file) files.push_back(entry.secret.file->path());
    for (const auto& path : {entry.tls.certificate, entry.tls.key, entry.tls.ca_bundle}) {
      if (!path.empty()) files.emplace_back(path);
    }
  }
  return files;
}

Credentials::EntriesPtr Credentials::entries() {
  try {
    return read();
  } catch (const Error& error) {
    const std::string text = fmt::format("credentials: {}", error.what());
    bool told = false;
    const EntriesPtr last = state_.with([&](State& state) {
      told = std::exchange(state.complaint, text) == text;
      return state.entries;
    });
    if (!told) log_.error("{}{}", text, last ? "; what it said before still counts" : "");
    if (last) return last;
    throw Error(error.code(), text);
  }
}

Credentials::EntriesPtr Credentials::read() {
  const SecretFile::ContentPtr content = file_.content();
  const EntriesPtr known = state_.with([&](const State& state) {
    return state.content == content && state.complaint.empty() ? state.entries : nullptr;
  });
  if (known) return known;

  auto entries = std::make_shared<std::vector<CredentialEntry>>();
  std::string complaint;
  if (!content) {
    complaint = fmt::format("credentials: there is no {}: none are sent", file_.path().string());
  } else {
    try {
      *entries = parse_credentials(content->text);
    } catch (...) {
      rethrow_with(file_.path().string());
    }
  }
  const bool told = state_.with([&](State& state) {
    const bool same = state.content == content && state.complaint == complaint && state.entries;
    state = {content, entries, complaint};
    return same;
  });
  if (told) return entries;
  if (!content) {
    log_.warning("{}", complaint);
    return entries;
  }
  log_.info("credentials for {} places are read from {}", entries->size(), file_.path().string());
  if (content->others_may_read) {
    log_.warning("everybody on this machine may read the credentials in {}: chmod o-r",
                 file_.path().string());
  }
  return entries;
}

std::string Credentials::text_of(const Secret& secret) const {
  std::string text;
  std::string place = "the value";
  if (secret.file) {
    place = secret.file->path().string();
    const auto content = secret.file->content();
    if (!content) throw Error(Errc::kNotFound, "there is no " + place);
    text = trimmed(content->text);
  } else if (!secret.variable.empty()) {
    place = "the environment's " + snapshot::printable(secret.variable);
    const auto found = options_.environment.find(secret.variable);
    if (found != options_.environment.end()) text = trimmed(found->second);
  } else {
    text = secret.value;
  }
  if (text.empty()) throw Error(Errc::kInvalid, place + " is empty");
  return text;
}

net::Headers Credentials::headers_of(const CredentialEntry& entry) const {
  switch (entry.kind) {
    case CredentialEntry::Kind::kNone:
      return {};
    case CredentialEntry::Kind::kBearer:
      return {{"Authorization", "Bearer " + checked(text_of(entry.secret), Blanks::kNone)}};
    case CredentialEntry::Kind::kBasic:
      return {{"Authorization",
               "Basic " + snapshot::to_base64(entry.name + ":" + text_of(entry.secret))}};
    case CredentialEntry::Kind::kHeader:
      return {{entry.name, checked(trimmed(text_of(entry.secret)), Blanks::kAllowed)}};
  }
  return {};
}

}  // namespace weightfs::source
