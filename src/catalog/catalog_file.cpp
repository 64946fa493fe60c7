// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "catalog/catalog_file.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <nlohmann/json.hpp>

namespace weightfs::catalog {

namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr std::uint64_t kMaxBytes = 256ULL << 20;

Digest digest_of(const Json& value) {
  const auto digest = Digest::parse(value.get<std::string>());
  if (!digest) throw Error(Errc::kCorrupt, "not a digest: " + value.dump());
  return *digest;
}

Json to_json(const Model& model) {
  Json revisions = Json::array();
  for (const Digest& key : model.revisions) revisions.push_back(key.hex());
  Json json = {{"name", model.name},
               {"source", model.source},
               {"current", model.current.hex()},
               {"revisions", std::move(revisions)},
               {"pinned", model.pin.has_value()},
               {"pin_reason", model.pin ? model.pin->reason : ""},
               {"added", model.added},
               {"updated", model.updated}};
  for (const auto& [key, origin] : model.origins) {
    json["origins"][key.hex()] = {{"source", origin.source}, {"revision", origin.revision}};
  }
  if (model.declared) json["declared"] = true;
  if (model.confirmed) json["confirmed"] = model.confirmed->hex();
  if (model.pin && !model.pin->owner.empty()) json["pin_owner"] = model.pin->owner;
  if (model.pin && model.pin->until != 0) json["pin_until"] = model.pin->until;
  return json;
}

Model from_json(const Json& json) {
  Model model;
  model.name = json.at("name").get<std::string>();
  check_name(model.name);
  model.source = json.at("source").get<std::string>();
  model.current = digest_of(json.at("current"));
  for (const Json& key : json.at("revisions")) model.revisions.push_back(digest_of(key));
  if (const auto origins = json.find("origins"); origins != json.end()) {
    for (const auto& [key, origin] : origins->items()) {
      model.origins[digest_of(key)] = {.source = origin.at("source").get<std::string>(),
                                       .revision = origin.at("revision").get<std::string>()};
    }
  }
  if (const auto key = json.find("confirmed"); key != json.end()) {
    model.confirmed = digest_of(*key);
  }
  model.declared = json.value("declared", false);
  if (json.at("pinned").get<bool>()) {
    model.pin = {.reason = json.at("pin_reason").get<std::string>(),
                 .owner = json.value("pin_owner", ""),
                 .until = json.value("pin_until", std::int64_t{0})};
  }
  model.added = json.at("added").get<std::int64_t>();
  model.updated = json.at("updated").get<std::int64_t>();
  return model;
}

}  // namespace

Models read_models(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  try {
    const Json json = Json::parse(read_file(file, kMaxBytes));
    const int version = json.at("version").get<int>();
    if (version != kVersion) {
      throw Error(Errc::kUnsupported, file.string() + " has format version " +
                                          std::to_string(version) + "; this build reads " +
                                          std::to_string(kVersion));
    }
    Models models;
    for (const Json& entry : json.at("models")) {
      Model model = from_json(entry);
      models.emplace(model.name, std::move(model));
    }
    return models;
  } catch (const Json::exception& error) {
    throw Error(Errc::kCorrupt, file.string() + ": " + error.what());
  }
}

void write_models(const std::filesystem::path& file, const Models& models) {
  Json entries = Json::array();
  for (const auto& [name, model] : models) entries.push_back(to_json(model));
  write_file_durably(file,
                     Json{{"version", kVersion}, {"models", std::move(entries)}}.dump(1) + "\n");
}

}  // namespace weightfs::catalog
