// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/credential_entry.hpp"

#include "base/error.hpp"
#include "net/redirect.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/json_problem.hpp"
#include "source/error_context.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <strings.h>
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace weightfs::source {

using snapshot::printable;

namespace {

using nlohmann::json;

constexpr const char* kListKey = "credentials";
constexpr std::array<std::string_view, 15> kKeys = {"url",
                                                    "token",
                                                    "token_file",
                                                    "token_env",
                                                    "username",
                                                    "header",
                                                    "password",
                                                    "value",
                                                    "password_file",
                                                    "password_env",
                                                    "value_file",
                                                    "value_env",
                                                    "client_certificate",
                                                    "client_key",
                                                    "ca_bundle"};
constexpr const char* kPlainKey = "allow_plain";

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Errc::kInvalid, what);
}

/// The text of a key; nullopt where it is absent.
std::optional<std::string> text_of(const json& entry, const std::string& key) {
  const auto found = entry.find(key);
  if (found == entry.end()) return std::nullopt;
  if (!found->is_string() || found->get_ref<const std::string&>().empty()) {
    refuse(key + " must be text");
  }
  return found->get<std::string>();
}

std::optional<std::string> path_of(const json& entry, const std::string& key) {
  auto path = text_of(entry, key);
  if (path && !std::filesystem::path(*path).is_absolute())
    refuse(key + " must be an absolute path");
  return path;
}

/// `key`, or the file or the variable that has it; nullopt where there is none of them.
std::optional<Secret> secret_of(const json& entry, const std::string& key) {
  const auto value = text_of(entry, key);
  const auto file = path_of(entry, key + "_file");
  const auto variable = text_of(entry, key + "_env");
  const int given = int{value.has_value()} + int{file.has_value()} + int{variable.has_value()};
  if (given == 0) return std::nullopt;
  if (given > 1) refuse(fmt::format("{0}, {0}_file and {0}_env exclude each other", key));
  return Secret{.value = value.value_or(""),
                .file = file ? std::make_shared<SecretFile>(*file) : nullptr,
                .variable = variable.value_or("")};
}

/// Those that say how the request is to be read are not for people to set, and those that go along
/// with a redirect to another host are none to keep a secret in.
void check_header_name(const std::string& name) {
  constexpr std::array<const char*, 8> kFraming = {
      "connection", "content-length",    "content-type", "expect", "host",
      "te",         "transfer-encoding", "upgrade"};
  const auto token = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  const bool framing = std::ranges::any_of(
      kFraming, [&](const char* known) { return ::strcasecmp(known, name.c_str()) == 0; });
  if (!std::ranges::all_of(name, token) || framing || net::describes_object(name)) {
    refuse("header " + printable(name) + " is not one that may hold a credential");
  }
}

/// What is sent for it, if anything; an entry has one of the three.
void parse_secret(const json& json_entry, CredentialEntry& entry) {
  struct Way {
    CredentialEntry::Kind kind;
    const char* name_key;
    const char* secret_key;
  };
  constexpr std::array<Way, 3> kWays = {Way{CredentialEntry::Kind::kBearer, "", "token"},
                                        Way{CredentialEntry::Kind::kBasic, "username", "password"},
                                        Way{CredentialEntry::Kind::kHeader, "header", "value"}};
  for (const Way& way : kWays) {
    const bool named = *way.name_key != '\0';
    const auto name = named ? text_of(json_entry, way.name_key) : std::nullopt;
    auto secret = secret_of(json_entry, way.secret_key);
    if (!name && !secret) continue;
    if (named && name.has_value() != secret.has_value()) {
      refuse(fmt::format("{} and {} belong together", way.name_key, way.secret_key));
    }
    if (entry.kind != CredentialEntry::Kind::kNone) {
      refuse("a token, a user name and a header exclude each other");
    }
    entry.kind = way.kind;
    entry.name = name.value_or("");
    entry.secret = std::move(*secret);
  }
  if (entry.kind == CredentialEntry::Kind::kHeader) check_header_name(entry.name);
  // RFC 7617, 2: the first one ends it.
  if (entry.kind == CredentialEntry::Kind::kBasic && entry.name.find(':') != std::string::npos) {
    refuse("username must not have a ':'");
  }
}

bool plain_is_allowed(const json& entry) {
  const auto found = entry.find(kPlainKey);
  if (found == entry.end()) return false;
  if (!found->is_boolean()) refuse(std::string(kPlainKey) + " must be true or false");
  return found->get<bool>();
}

void parse_tls(const json& json_entry, CredentialEntry& entry) {
  entry.tls = {.certificate = path_of(json_entry, "client_certificate").value_or(""),
               .key = path_of(json_entry, "client_key").value_or(""),
               .ca_bundle = path_of(json_entry, "ca_bundle").value_or("")};
  if (!entry.tls.key.empty() && entry.tls.certificate.empty()) {
    refuse("client_key needs client_certificate");
  }
  if (entry.tls != net::TlsIdentity{} && entry.url.origin().scheme != "https") {
    refuse("certificates are for https");
  }
}

CredentialEntry parse_entry(const json& json_entry) {
  if (!json_entry.is_object()) refuse("must be an object");
  for (const auto& [key, value] : json_entry.items()) {
    if (std::ranges::find(kKeys, key) == kKeys.end() && key != kPlainKey) {
      refuse("unknown key " + printable(key));
    }
  }
  const auto url = text_of(json_entry, "url");
  if (!url) refuse("has no url");
  CredentialEntry entry{.url = net::Url::parse(*url)};
  try {
    if (!entry.url.query().empty()) refuse("its url must not have a query");
    parse_secret(json_entry, entry);
    parse_tls(json_entry, entry);
    if (entry.kind == CredentialEntry::Kind::kNone && entry.tls == net::TlsIdentity{}) {
      refuse("gives nothing to send");
    }
    const net::Origin& origin = entry.url.origin();
    if (origin.scheme == "http" && !origin.is_loopback() && !plain_is_allowed(json_entry)) {
      refuse(
          fmt::format("would send a secret over plain http, for all to see: use https, or say "
                      "\"{}\": true",
                      kPlainKey));
    }
  } catch (...) {
    rethrow_with(entry.url.display());
  }
  return entry;
}

}  // namespace

bool CredentialEntry::is_for(const net::Url& other) const {
  if (other.origin() != url.origin() || !other.path().starts_with(url.path())) return false;
  return url.path().ends_with('/') || other.path().size() == url.path().size() ||
         other.path()[url.path().size()] == '/';
}

std::vector<CredentialEntry> parse_credentials(std::string_view text) {
  json root;
  try {
    root = json::parse(text, nullptr, true, true);
  } catch (const json::parse_error& error) {
    refuse("not JSON: " + snapshot::json_problem(error.what()));
  }
  if (!root.is_object() || root.size() != 1 || !root.contains(kListKey) ||
      !root[kListKey].is_array()) {
    refuse(fmt::format("must be {{\"{}\": [...]}}", kListKey));
  }
  std::vector<CredentialEntry> entries;
  for (const json& json_entry : root[kListKey]) {
    try {
      CredentialEntry entry = parse_entry(json_entry);
      const auto same = [&](const CredentialEntry& other) {
        return other.url.display() == entry.url.display();
      };
      if (std::ranges::any_of(entries, same)) refuse(entry.url.display() + " is named twice");
      entries.push_back(std::move(entry));
    } catch (...) {
      rethrow_with(fmt::format("{}[{}]", kListKey, entries.size()));
    }
  }
  return entries;
}

}  // namespace weightfs::source
