// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/daemon_directories.hpp"

#include "base/error.hpp"
#include "cli/ownership.hpp"
#include "cli/predecessor.hpp"
#include "store/layout.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <vector>

namespace weightfs::cli {

namespace {

/// One of several that cannot be given because its disk fails is left for later: the daemon goes
/// without it.
void give_stores(const std::vector<std::filesystem::path>& stores, const ProcessUser& user) {
  std::exception_ptr failure;
  std::size_t failed = 0;
  for (const std::filesystem::path& store : stores) {
    try {
      give_directory(store, user, {"the store", store::foreign_entry});
    } catch (const Error& error) {
      if (error.code() != Errc::kIo && error.code() != Errc::kNoSpace) throw;
      failure = std::current_exception();
      ++failed;
    }
  }
  if (failed == stores.size()) std::rethrow_exception(failure);
}

}  // namespace

void prepare_directories(const Settings& settings, const ProcessUser& user) {
  if (std::ranges::find(settings.stores, settings.state) != settings.stores.end()) {
    throw Error(Errc::kInvalid, "the store and the state need directories of their own");
  }
  // A daemon whose keeper was killed has them for a moment longer.
  after_predecessor([&] {
    give_stores(settings.stores, user);
    give_directory(settings.state, user, {"the state directory", foreign_to_state});
  });
}

}  // namespace weightfs::cli
