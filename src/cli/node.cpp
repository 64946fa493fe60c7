// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/node.hpp"

#include "base/file.hpp"
#include "base/thread.hpp"
#include "cli/predecessor.hpp"
#include "cli/setting_table.hpp"
#include "cli/store_opening.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <set>
#include <unordered_set>
#include <utility>

namespace weightfs::cli {

namespace {

constexpr unsigned kFilesAtOnce = 4;  // of a snapshot that is warmed, side by side
constexpr std::chrono::seconds kModelPatience{10};

net::HttpClientOptions http_options(const Settings& settings) {
  net::HttpClientOptions options;
  options.stall_timeout = settings.stall_timeout;
  options.ca_bundle = settings.ca_bundle.string();
  return options;
}

Mount mount_of(const keeper::SessionMemory& memory) {
  return memory.init_state() == keeper::SessionMemory::InitState::kDone ? Mount::kTakenOver
                                                                        : Mount::kNew;
}

fetch::FetcherOptions fetcher_options(const Settings& settings, fetch::Room& room) {
  fetch::FetcherOptions options;
  options.room = &room;
  options.connections = settings.connections;
  options.connections_per_blob = settings.connections_per_blob;
  options.part_size = settings.part_size;
  options.stall_timeout = settings.stall_timeout;
  options.deadline = settings.deadline;
  options.verify = settings.verify;
  options.hash_threads = settings.hash_threads;
  options.keep = settings.keeps() ? fetch::Keep::kStore : fetch::Keep::kMemoryOnly;
  return options;
}

}  // namespace

Node::Node(const Settings& settings, Sockets sockets, keeper::Session session, const Log& log)
    : settings_(settings),
      log_(log.named("daemon")),
      keeper_(std::move(sockets.keeper)),
      session_handle_(std::move(session)),
      memory_(session_handle_.memory),
      store_(clock_, log.named("store")),
      catalog_(after_predecessor([&] {
        open_volumes(store_, settings, mount_of(memory_));
        return catalog::Catalog(settings.state, clock_, log.named("catalog"));
      })),
      http_(http_options(settings)),
      sources_(http_),
      records_(memory_),
      incarnations_(records_),
      reactions_(catalog_, incarnations_, last_errors_, log.named("fill")),
      checks_({.store = store_, .incarnations = incarnations_, .last_errors = last_errors_},
              settings.verify_open, log.named("check")),
      governor_(std::make_unique<cache::Governor>(
          cache::Governor::Parts{
              .store = store_, .catalog = catalog_, .clock = clock_, .observer = *this},
          cache::GovernorOptions{.admission = settings.admission,
                                 .limits = settings.limits,
                                 .use_log = settings.state / "uses"},
          log.named("cache"))),
      fetcher_(std::make_unique<fetch::Fetcher>(store_, clock_, reactions_,
                                                fetcher_options(settings, *governor_), log)),
      warmer_(std::make_unique<fetch::Warmer>(*fetcher_, store_, kFilesAtOnce, log)),
      filesystem_({.catalog = catalog_,
                   .store = store_,
                   .governor = *governor_,
                   .fetcher = *fetcher_,
                   .sources = sources_,
                   .invalidator = notifier_,
                   .incarnations = incarnations_,
                   .last_errors = last_errors_,
                   .checks = checks_,
                   .log = records_}),
      backings_(keeper_),
      modes_(backings_, memory_, log.named("passthrough")),
      session_(std::move(session_handle_.fuse), filesystem_, modes_, memory_, notifier_,
               {.threads = settings.fuse_threads,
                .passthrough = settings.passthrough,
                .on_ready = [this] { on_ready(); }},
               log.named("fuse")) {
  try {
    start(std::move(sockets.control), log);
  } catch (...) {
    shut_down();
    throw;
  }
}

// What was left of files that no model has any more. A state that is new knows nothing of that.
void Node::discard_orphans() {
  if (catalog_.list().empty()) return;
  std::unordered_set<store::PartialKey> wanted;
  for (const snapshot::SnapshotPtr& snapshot : catalog_.snapshots()) {
    for (std::size_t i = 0; i < snapshot->files().size(); ++i) {
      wanted.insert(fetch::Target{.snapshot = snapshot, .file_index = i, .source = nullptr}.key());
    }
  }
  store_.discard_partials_but(wanted);
}

void Node::start(control::ListenSocket control, const Log& log) {
  reactions_.attach(warmer_.get());
  discard_orphans();
  close_lost_backings();
  if (const std::string excess = cache::capacity_excess(settings_.limits, store_.volumes());
      !excess.empty()) {
    log_.warning("{}", excess);
  }
  session_.start();
  service_ = std::make_unique<control::Service>(control::Service::Parts{
      .catalog = catalog_,
      .store = store_,
      .governor = *governor_,
      .fetcher = *fetcher_,
      .warmer = *warmer_,
      .sources = sources_,
      .mount = *this,
      .mode = find_setting("mode")->show(settings_),
      .admission = find_setting("admission")->show(settings_),
  });
  router_ = std::make_unique<control::Router>(*service_, log.named("control"));
  std::vector<ModelSetting> models = settings_.models;
  for (const catalog::Model& lost : catalog_.lost()) {
    models.push_back({.name = lost.name, .source = lost.source, .origin = "the catalog"});
  }
  model_adder_ = std::make_unique<ModelAdder>(*service_, catalog_, std::move(models), log_);
  // Whoever finds the control socket finds the models, too, unless their sources are slow or away.
  model_adder_->wait_until_tried(kModelPatience);
  // Not before: what they have in the store is no stray.
  if (fetcher_->keep() == fetch::Keep::kStore) {
    upkeep_ = std::make_unique<cache::Upkeep>(*governor_, log.named("cache"));
  }
  store_probe_ = std::make_unique<cache::StoreProbe>(store_, [this] { volume_returned(); }, log_);
  server_ = std::make_unique<control::Server>(std::move(control), *router_,
                                              control::ServerOptions{}, log);
}

Node::~Node() {
  shut_down();
}

// The members would go in the reverse order of their making, and what the fetcher cancels would be
// answered through a session that is gone.
void Node::shut_down() noexcept {
  session_.stop();
  server_.reset();
  model_adder_.reset();
  router_.reset();
  service_.reset();
  store_probe_.reset();
  upkeep_.reset();
  reactions_.attach(nullptr);
  warmer_.reset();
  fetcher_.reset();
}

// Ids that a dead daemon registered but did not live to write down would pin their blobs for good.
void Node::close_lost_backings() {
  std::set<std::int32_t> known;
  for (const auto& open : memory_.backings()) known.insert(open.backing_id);
  for (const std::int32_t id : keeper_.open_backings()) {
    if (!known.contains(id)) keeper_.close_backing(id);
  }
}

void Node::on_ready() {
  constexpr std::uint64_t kKibi = 1024;
  try {
    keeper_.set_read_ahead(static_cast<std::uint32_t>(settings_.read_ahead / kKibi));
  } catch (const Error& error) {
    log_.warning("read-ahead stays at the kernel's default: {}", error.what());
  }
  probe_passthrough();
  ready_ = true;
  const fuse::PassthroughStatus status = modes_.status();
  log_.info("{} is served{}", session_handle_.mountpoint,
            status.active ? "" : ", without passthrough: " + status.reason);
}

// With one volume that the kernel can read by itself; where it cannot do so with the files of
// another, the daemon reads those.
void Node::probe_passthrough() {
  modes_.postpone("no directory of the store is open");
  for (const store::VolumeStatus& volume : store_.volumes()) {
    if (volume.state == store::VolumeState::kNotOpened) continue;
    try {
      modes_.probe(open_file(volume.directory / "VERSION", O_RDONLY));
    } catch (const Error& error) {
      modes_.postpone(error.what());
    }
    if (modes_.status().active) break;
  }
  filesystem_.set_passthrough(modes_.status().active ? vfs::Passthrough::kActive
                                                     : vfs::Passthrough::kInactive);
}

// Some time after the start, on the thread that probes.
void Node::volume_returned() {
  discard_orphans();
  governor_->store_changed();
  if (ready_ && !modes_.status().active) probe_passthrough();
}

Node::End Node::run(int stop_descriptor) {
  const std::jthread watcher = start_thread("stop", [&](std::stop_token stop) {
    // The keeper's socket is readable whenever it answers; only its end is of interest here.
    std::array<pollfd, 2> waiting = {pollfd{stop_descriptor, POLLIN, 0},
                                     pollfd{keeper_.descriptor(), 0, 0}};
    constexpr int kTick = 200;  // milliseconds until a stop that came from the session is seen
    while (!stop.stop_requested()) {
      if (::poll(waiting.data(), waiting.size(), kTick) > 0) break;
    }
    session_.end();
  });
  session_.wait();
  pollfd stop{stop_descriptor, POLLIN, 0};
  if (::poll(&stop, 1, 0) > 0) return End::kStopped;
  // A keeper that ends unmounts first.
  if (!session_.connected()) return End::kUnmounted;
  log_.error(
      "ending: the keeper does not answer any more, or the kernel's requests cannot be read");
  return End::kLost;
}

control::MountInfo Node::mount_info() {
  const fuse::PassthroughStatus status = modes_.status();
  return {.mountpoint = session_handle_.mountpoint,
          .keeper_pid = session_handle_.keeper_pid,
          .passthrough_active = status.active,
          .passthrough_reason = status.reason};
}

// The server, through which this is asked, comes after the adder and goes before it.
std::vector<api::MissingModel> Node::missing_models() {
  return model_adder_->missing();
}

void Node::unmount(control::Unmount how) {
  keeper_.unmount(how == control::Unmount::kLazy ? keeper::KeeperClient::Detach::kLazy
                                                 : keeper::KeeperClient::Detach::kNo);
}

}  // namespace weightfs::cli
