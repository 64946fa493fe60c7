// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/node_store.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/predecessor.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace weightfs::cli {

namespace {

std::string boot_id() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id", 256);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

bool disk_fails(Errc code) noexcept {
  return code == Errc::kIo || code == Errc::kNoSpace || code == Errc::kPermission;
}

std::filesystem::path make_temporary_directory() {
  std::string name = std::filesystem::temp_directory_path() / "weightfs-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw_errno(errno, "create " + name);
  return name;
}

}  // namespace

NodeStore::NodeStore(const Settings& settings, Mount mount, const Clock& clock, const Log& log) {
  const auto open = [&](const std::filesystem::path& directory, bool network) {
    return store::Store::open(
        {.directory = directory, .allow_network_store = network, .boot_id = boot_id()}, clock,
        log.named("store"));
  };
  try {
    store_ = after_predecessor([&] { return open(settings.store, settings.allow_network_store); });
  } catch (const Error& error) {
    if (mount == Mount::kNew || !disk_fails(error.code())) throw;
    log.error("{}; nothing is kept until a daemon can open the store", error.what());
    error_ = error.what();
    substitute_ = make_temporary_directory();
    store_ = open(substitute_, true);
  }
}

NodeStore::~NodeStore() {
  store_.reset();
  std::error_code ignored;
  if (!substitute_.empty()) std::filesystem::remove_all(substitute_, ignored);
}

}  // namespace weightfs::cli
