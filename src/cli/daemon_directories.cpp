// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/daemon_directories.hpp"

#include "base/error.hpp"
#include "cli/ownership.hpp"
#include "cli/predecessor.hpp"
#include "store/layout.hpp"

namespace weightfs::cli {

void prepare_directories(const Settings& settings, const ProcessUser& user) {
  if (settings.store == settings.state) {
    throw Error(Errc::kInvalid, "the store and the state need directories of their own");
  }
  // A daemon whose keeper was killed has them for a moment longer.
  after_predecessor([&] {
    give_directory(settings.store, user, {"the store", store::foreign_entry});
    give_directory(settings.state, user, {"the state directory", foreign_to_state});
  });
}

}  // namespace weightfs::cli
