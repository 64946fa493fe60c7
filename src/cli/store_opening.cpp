// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/store_opening.hpp"

#include "base/file.hpp"
#include "cli/predecessor.hpp"

#include <string>

namespace weightfs::cli {

namespace {

std::string boot_id() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id", 256);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace

store::StoreOptions store_options(const Settings& settings) {
  return {.directories = settings.stores,
          .allow_network_store = settings.allow_network_store,
          .boot_id = boot_id(),
          .quarantine = {}};
}

void open_volumes(store::Store& store, const Settings& settings, Mount mount) {
  const store::StoreOptions options = store_options(settings);
  const auto unopenable =
      mount == Mount::kTakenOver ? store::Unopenable::kTryLater : store::Unopenable::kRefuse;
  after_predecessor([&] { store.open_volumes(options, unopenable); });
}

}  // namespace weightfs::cli
