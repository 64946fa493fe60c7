// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cache/tenants.hpp"
#include "digest/digest.hpp"
#include "snapshot/snapshot.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace weightfs::cache {

/// Weights and configs, some of which others have, too. The one with number 7 has configs only.
inline snapshot::SnapshotPtr random_model(std::size_t number, std::mt19937_64& random) {
  std::vector<snapshot::File> files;
  const auto add = [&](std::string path, const std::string& content, std::uint64_t size) {
    snapshot::File file;
    file.path = std::move(path);
    file.size = size;
    file.sha256 = Digest::of(content);
    files.push_back(std::move(file));
  };
  const std::uint64_t shards = number == 7 ? 0 : 1 + random() % 3;
  for (std::uint64_t i = 0; i < shards; ++i) {
    const std::uint64_t which = random() % 3 == 0 ? random() % 4 : 100 + random() % 1000;
    add(fmt::format("w{}.safetensors", i), fmt::format("weights {}", which), 3 + which % 30);
  }
  const std::uint64_t config = random() % 4;
  add("config.json", fmt::format("config {}", config), 1 + config);
  if (number == 7) add("other.json", "another config", 5);
  return std::make_shared<const snapshot::Snapshot>(fmt::format("file:///{}", number), "",
                                                    std::move(files));
}

/// Each by the beginning of names.
inline std::vector<Tenant> some_tenants(unsigned which) {
  switch (which % 3) {
    case 0:
      return {};
    case 1:
      return {{.name = "a", .floor = {.percent = 25}, .path = "a"},
              {.name = "b", .cap = {.bytes = 60}, .path = "b"}};
    default:
      return {{.name = "a", .floor = {.bytes = 25}, .cap = {.bytes = 50}, .path = "a"},
              {.name = "b", .floor = {.percent = 20}, .cap = {.percent = 50}, .path = "b"},
              {.name = "c", .floor = {.bytes = 10}, .path = "c"}};
  }
}

}  // namespace weightfs::cache
