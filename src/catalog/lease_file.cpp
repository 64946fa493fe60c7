// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/lease_file.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <nlohmann/json.hpp>

namespace weightfs::catalog {

namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr std::uint64_t kMaxBytes = 1ULL << 30;

Json to_json(const Lease& lease) {
  Json artifacts = Json::array();
  for (const Lease::Artifact& artifact : lease.artifacts) {
    artifacts.push_back({{"artifact", artifact.text}, {"snapshot", artifact.snapshot.hex()}});
  }
  Json json = {
      {"id", lease.id},       {"artifacts", std::move(artifacts)}, {"not_before", lease.not_before},
      {"until", lease.until}, {"bandwidth", lease.bandwidth},      {"priority", lease.priority},
      {"owner", lease.owner}};
  if (lease.user) json["user"] = *lease.user;
  return json;
}

Lease from_json(const Json& json) {
  Lease lease;
  lease.id = json.at("id").get<std::string>();
  check_lease_id(lease.id);
  for (const Json& entry : json.at("artifacts")) {
    const auto key = Digest::parse(entry.at("snapshot").get<std::string>());
    if (!key) throw Error(Errc::kCorrupt, "not a digest: " + entry.at("snapshot").dump());
    lease.artifacts.push_back({entry.at("artifact").get<std::string>(), *key});
  }
  lease.not_before = json.at("not_before").get<std::int64_t>();
  lease.until = json.at("until").get<std::int64_t>();
  lease.bandwidth = json.at("bandwidth").get<std::uint64_t>();
  lease.priority = json.at("priority").get<std::int64_t>();
  // Files of before these were written are of the same version.
  lease.owner = json.value("owner", "");
  if (json.contains("user")) lease.user = json["user"].get<std::uint32_t>();
  return lease;
}

}  // namespace

LeaseMap read_leases(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  try {
    const Json json = Json::parse(read_file(file, kMaxBytes));
    const int version = json.at("version").get<int>();
    if (version != kVersion) {
      throw Error(Errc::kUnsupported, file.string() + " has format version " +
                                          std::to_string(version) + "; this build reads " +
                                          std::to_string(kVersion));
    }
    LeaseMap leases;
    for (const Json& entry : json.at("leases")) {
      Lease lease = from_json(entry);
      leases.emplace(lease.id, std::move(lease));
    }
    return leases;
  } catch (const Json::exception& error) {
    throw Error(Errc::kCorrupt, file.string() + ": " + error.what());
  }
}

void write_leases(const std::filesystem::path& file, const LeaseMap& leases) {
  Json entries = Json::array();
  for (const auto& [id, lease] : leases) entries.push_back(to_json(lease));
  write_file_durably(file,
                     Json{{"version", kVersion}, {"leases", std::move(entries)}}.dump(1) + "\n");
}

}  // namespace weightfs::catalog
