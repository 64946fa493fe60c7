// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "mounted.hpp"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace weightfs::fuse::test {

namespace {

std::unique_ptr<store::Store> open_store(const std::filesystem::path& directory,
                                         const std::string& boot_id, const Clock& clock) {
  return store::Store::open(
      {.directories = {directory / "store"}, .allow_network_store = false, .boot_id = boot_id},
      clock, Log::silent());
}

}  // namespace

ScratchDirectory::ScratchDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "weightfs-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Mounted::Mounted(const World& world)
    : clock(world.clock_shift),
      store(open_store(world.directory, world.boot_id, clock)),
      catalog(world.directory / "state", clock, Log::silent()),
      http({}),
      sources(http),
      records(world.memory),
      incarnations(records),
      reactions(catalog, incarnations, last_errors, Log::silent()),
      checks({.store = *store, .incarnations = incarnations, .last_errors = last_errors},
             world.checks, Log::silent()),
      cache({.store = *store,
             .catalog = catalog,
             .clock = clock,
             .observer = evictions,
             .store_directories = {}},
            {.admission = policy::Admission::kAlways, .use_log = world.directory / "uses"},
            cache::Mode::kProd, Log::silent()),
      fetcher(std::make_unique<fetch::Fetcher>(*store, clock, reactions, fetch::FetcherOptions{},
                                               Log::silent())),
      filesystem({.clock = clock,
                  .catalog = catalog,
                  .store = *store,
                  .cache = cache,
                  .fetcher = *fetcher,
                  .sources = sources,
                  .invalidator = notifier,
                  .incarnations = incarnations,
                  .last_errors = last_errors,
                  .checks = checks,
                  .log = records}),
      modes(world.backings, world.memory, Log::silent()),
      session(world.kernel.server_end(), filesystem, modes, world.memory, notifier,
              {.threads = 2,
               .passthrough = true,
               .on_ready =
                   [this, passthrough = world.passthrough, before = world.before_ready] {
                     if (before) before();
                     if (passthrough) {
                       modes.probe(Fd());
                       filesystem.set_passthrough(vfs::Passthrough::kActive);
                     }
                     ready = true;
                   }},
              Log::silent()) {
  session.start();
}

Mounted::~Mounted() {
  session.stop();
  fetcher.reset();
}

void Mounted::add(const std::string& name, const std::filesystem::path& source_directory) {
  const std::string reference = "file://" + source_directory.string();
  catalog.add(name, reference,
              std::make_shared<const snapshot::Snapshot>(sources.get(reference)->resolve({})));
}

void Mounted::wait_until_ready() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!ready) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("not ready");
    std::this_thread::yield();
  }
}

}  // namespace weightfs::fuse::test
