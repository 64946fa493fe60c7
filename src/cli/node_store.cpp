// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/node_store.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/file.hpp"
#include "base/process_lock.hpp"
#include "cli/predecessor.hpp"
#include "digest/digest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace weightfs::cli {

namespace {

namespace fs = std::filesystem;

std::string boot_id() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id", 256);
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

bool disk_fails(Errc code) noexcept {
  return code == Errc::kIo || code == Errc::kNoSpace || code == Errc::kPermission;
}

/// One place for each store, so that who comes after a daemon that was killed finds what it left.
fs::path substitute_of(const fs::path& store) {
  return fs::temp_directory_path() / ("weightfs-" + Digest::of(store.native()).short_hex());
}

/// Nothing of others: neither of another user, who may have foreseen the name, nor of a daemon that
/// lives.
void remove_left_behind(const fs::path& substitute) {
  const Fd directory(::open(substitute.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found = {};
  if (!directory || ::fstat(directory.value(), &found) != 0 || found.st_uid != ::geteuid()) return;
  try {
    const Fd unlocked = keep_unlocked(directory, "lock", substitute, "the substitute store");
    std::error_code ignored;
    fs::remove_all(substitute, ignored);
  } catch (const Error&) {
    return;
  }
}

fs::path make_directory(const fs::path& wanted) {
  constexpr mode_t kMode = 0700;
  if (::mkdir(wanted.c_str(), kMode) == 0) return wanted;
  std::string name = fs::temp_directory_path() / "weightfs-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw_errno(errno, "create " + name);
  return name;
}

}  // namespace

NodeStore::NodeStore(const Settings& settings, Mount mount, const Clock& clock, const Log& log) {
  const auto open = [&](const fs::path& directory, bool network) {
    return store::Store::open(
        {.directory = directory, .allow_network_store = network, .boot_id = boot_id()}, clock,
        log.named("store"));
  };
  const fs::path substitute = substitute_of(settings.store);
  remove_left_behind(substitute);
  try {
    store_ = after_predecessor([&] { return open(settings.store, settings.allow_network_store); });
  } catch (const Error& error) {
    if (mount == Mount::kNew || !disk_fails(error.code())) throw;
    log.error("{}; nothing is kept until a daemon can open the store", error.what());
    error_ = error.what();
    substitute_ = make_directory(substitute);
    store_ = open(substitute_, true);
  }
}

NodeStore::~NodeStore() {
  store_.reset();
  std::error_code ignored;
  if (!substitute_.empty()) fs::remove_all(substitute_, ignored);
}

}  // namespace weightfs::cli
