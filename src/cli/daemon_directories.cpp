// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/daemon_directories.hpp"

#include "base/error.hpp"
#include "cli/ownership.hpp"

namespace weightfs::cli {

void prepare_directories(const Settings& settings, const ProcessUser& user) {
  if (settings.store == settings.state) {
    throw Error(Errc::kInvalid, "the store and the state need directories of their own");
  }
  give_directory(settings.store, user, store_entries());
  give_directory(settings.state, user, state_entries());
}

}  // namespace weightfs::cli
