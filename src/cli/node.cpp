// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/node.hpp"

#include "base/file.hpp"
#include "base/thread.hpp"
#include "base/version.hpp"
#include "cli/predecessor.hpp"
#include "cli/setting_table.hpp"
#include "cli/stop_signals.hpp"
#include "cli/store_opening.hpp"
#include "snapshot/reference.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
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

fetch::Keep keep_of(cache::Mode mode) {
  return mode == cache::Mode::kProd ? fetch::Keep::kStore : fetch::Keep::kMemoryOnly;
}

/// The one that was chosen while this mount was up, else that of the settings. 0 is no choice.
cache::Mode mode_of(const Settings& settings, const keeper::SessionMemory& memory) {
  const std::uint32_t chosen = memory.note();
  const bool valid = chosen > 0 && chosen <= cache::kModeWords.size();
  return valid ? static_cast<cache::Mode>(chosen - 1) : settings.mode;
}

cache::GovernorOptions governor_options(const Settings& settings) {
  return {.admission = settings.admission,
          .limits = settings.limits,
          .rollback_window = std::chrono::ceil<std::chrono::seconds>(settings.rollback_window),
          .tenants = settings.tenants,
          .use_log = settings.state / "uses"};
}

fetch::FetcherOptions fetcher_options(const Settings& settings, cache::Cache& cache,
                                      std::function<bool()> anybody_reads) {
  fetch::FetcherOptions options;
  options.room = &cache;
  options.connections = settings.connections;
  options.connections_per_blob = settings.connections_per_blob;
  options.part_size = settings.part_size;
  options.fill_bandwidth = settings.fill_bandwidth;
  options.write_bandwidth = settings.write_bandwidth;
  options.yield_to_readers = settings.yield_to_readers;
  options.disks = settings.stores;
  options.anybody_reads = std::move(anybody_reads);
  options.stall_timeout = settings.stall_timeout;
  options.deadline = settings.deadline;
  options.verify = settings.verify;
  options.hash_threads = settings.hash_threads;
  options.keep = keep_of(cache.mode());
  return options;
}

void add_outcomes(const std::vector<ModelReconciler::Outcome>& outcomes,
                  std::vector<api::ModelDiff>& models) {
  using Done = ModelReconciler::Done;
  for (api::ModelDiff& model : models) {
    const auto found = std::ranges::find_if(outcomes, [&](const auto& outcome) {
      return outcome.change.name == model.name && word(outcome.change.kind) == model.change;
    });
    const bool tried = found != outcomes.end();
    model.outcome = !tried                        ? "deferred"
                    : found->done == Done::kYes   ? "applied"
                    : found->done == Done::kLater ? "deferred"
                                                  : "refused";
    if (model.outcome != "applied") {
      model.reason = tried ? found->reason : "its turn has not come yet";
    }
  }
}

}  // namespace

Node::Node(Configuration configuration, Sockets sockets, keeper::Session session, const Log& log)
    : configuration_(std::move(configuration)),
      settings_(configuration_.loaded.settings),
      log_(log.named("daemon")),
      keeper_(std::move(sockets.keeper)),
      session_handle_(std::move(session)),
      memory_(session_handle_.memory),
      store_(clock_, log.named("store")),
      catalog_(after_predecessor([&] {
        if (mode_of(settings_, memory_) == cache::Mode::kProd) {
          open_volumes(store_, settings_, mount_of(memory_));
        }
        return catalog::Catalog(settings_.state, clock_, log.named("catalog"));
      })),
      events_({.file = settings_.state / "events.jsonl", .file_bytes = settings_.event_log_size},
              clock_, log.named("events")),
      http_(http_options(settings_)),
      credentials_(settings_.credentials, log.named("source")),
      sources_({http_, &credentials_}, settings_.hub),
      records_(memory_),
      incarnations_(records_),
      reactions_(catalog_, incarnations_, last_errors_, log.named("fill"),
                 telemetry::Events(events_)),
      checks_({.store = store_,
               .incarnations = incarnations_,
               .last_errors = last_errors_,
               .events = telemetry::Events(events_)},
              settings_.verify_open, log.named("check")),
      cache_(std::make_unique<cache::Cache>(
          cache::Cache::Parts{.store = store_,
                              .catalog = catalog_,
                              .clock = clock_,
                              .observer = *this,
                              .store_directories = settings_.stores,
                              .events = telemetry::Events(events_)},
          governor_options(settings_), mode_of(settings_, memory_), log.named("cache"))),
      fetcher_(std::make_unique<fetch::Fetcher>(
          store_, clock_, reactions_,
          fetcher_options(settings_, *cache_,
                          [this] { return filesystem_.counters().open_files > 0; }),
          log)),
      warmer_(std::make_unique<fetch::Warmer>(*fetcher_, store_, kFilesAtOnce, log)),
      filesystem_({.clock = clock_,
                   .catalog = catalog_,
                   .store = store_,
                   .cache = *cache_,
                   .fetcher = *fetcher_,
                   .sources = sources_,
                   .invalidator = notifier_,
                   .incarnations = incarnations_,
                   .last_errors = last_errors_,
                   .checks = checks_,
                   .log = records_,
                   .events = telemetry::Events(events_)}),
      backings_(keeper_),
      modes_(backings_, memory_, log.named("passthrough")),
      session_(std::move(session_handle_.fuse), filesystem_, modes_, memory_, notifier_,
               {.threads = settings_.fuse_threads,
                .passthrough = settings_.passthrough,
                .deployment = settings_.deployment,
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

// What the disks have is known as far as they are open.
void Node::warn_of_excess() {
  const std::string excess = cache::capacity_excess(settings_.limits, store_.volumes());
  const bool news =
      excess_told_.with([&](std::string& told) { return std::exchange(told, excess) != excess; });
  if (news && !excess.empty()) log_.warning("{}", excess);
}

void Node::start(control::ListenSocket control, const Log& log) {
  if (events_.follows_a_death()) {
    events_.put({.kind = telemetry::EventKind::kDropped,
                 .reason = "the daemon before this one was killed: what it recorded in its last "
                           "moment may be missing"});
  }
  events_.put({.kind = telemetry::EventKind::kStart,
               .reason = fmt::format("weightfs {}, pid {}, mode {}", kVersion, ::getpid(),
                                     cache::name(cache_->mode()))});
  reactions_.attach(warmer_.get());
  discard_orphans();
  close_lost_backings();
  look_at_credentials();
  warn_of_excess();
  session_.start();
  service_ = std::make_unique<control::Service>(control::Service::Parts{
      .catalog = catalog_,
      .store = store_,
      .cache = *cache_,
      .fetcher = *fetcher_,
      .warmer = *warmer_,
      .sources = sources_,
      .mount = *this,
      .clock = clock_,
      .admission = find_setting("admission")->show(settings_),
      .require_digest = settings_.require_digest,
      .flip_wait = settings_.flip_wait,
      .event_log = &events_,
      .hash_threads = settings_.hash_threads,
  });
  router_ = std::make_unique<control::Router>(*service_, log.named("control"));
  at_run_time_.with([&](AtRunTime& now) {
    now = {.tenants = settings_.tenants,
           .effective = configuration_.loaded.effective,
           .mistake = configuration_.mistake};
  });
  models_ = std::make_unique<ModelReconciler>(
      ModelReconciler::Parts{.service = *service_,
                             .catalog = catalog_,
                             .is_read =
                                 [this](const catalog::Model& model) {
                                   return std::ranges::any_of(
                                       model.revisions,
                                       [&](const Digest& key) { return cache_->is_open(key); });
                                 }},
      models_of(settings_), log_);
  // Whoever finds the control socket finds the models, too, unless their sources are slow or away.
  models_->wait_until_tried(kModelPatience);
  // Not before: what they have in the store is no stray.
  upkeep_ = std::make_unique<cache::Upkeep>(
      cache::Upkeep::Parts{.cache = *cache_,
                           .catalog = catalog_,
                           .clock = clock_,
                           .events = telemetry::Events(events_)},
      std::chrono::ceil<std::chrono::seconds>(settings_.confirm_after), log.named("cache"));
  store_probe_ = std::make_unique<cache::StoreProbe>(
      store_, *cache_, [this] { volume_returned(); }, telemetry::Events(events_), log_);
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
  models_.reset();
  router_.reset();
  service_.reset();
  store_probe_.reset();
  upkeep_.reset();
  reactions_.attach(nullptr);
  warmer_.reset();
  fetcher_.reset();
  events_.put({.kind = telemetry::EventKind::kStop});
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
  remember(configuration_.loaded);
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
  warn_of_excess();
  discard_orphans();
  cache_->stock_changed();
  if (ready_ && !modes_.status().active) probe_passthrough();
}

Node::End Node::run(int stop_descriptor, int reload_descriptor) {
  const std::jthread watcher = start_thread("stop", [&](std::stop_token stop) {
    // The keeper's socket is readable whenever it answers; only its end is of interest here.
    std::array<pollfd, 3> waiting = {pollfd{stop_descriptor, POLLIN, 0},
                                     pollfd{keeper_.descriptor(), 0, 0},
                                     pollfd{reload_descriptor, POLLIN, 0}};
    constexpr int kTick = 200;  // milliseconds until a stop that came from the session is seen
    while (!stop.stop_requested()) {
      if (::poll(waiting.data(), waiting.size(), kTick) <= 0) continue;
      if (waiting[0].revents != 0 || waiting[1].revents != 0) break;
      if (take_reload_signal(reload_descriptor)) reload_quietly();
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
  return {
      .mountpoint = session_handle_.mountpoint,
      .keeper_pid = session_handle_.keeper_pid,
      .passthrough_active = status.active,
      .passthrough_reason = status.reason,
      .configuration_mistake = at_run_time_.with([](const AtRunTime& now) { return now.mistake; })};
}

void Node::remember(const LoadedSettings& loaded) noexcept {
  try {
    records_.remember_configuration(loaded.file_text);
  } catch (const std::exception& error) {
    log_.warning("a successor will not know this configuration if its file breaks: {}",
                 error.what());
  }
}

// So that the log says it now what is wrong with them. It may be put right at any time.
void Node::look_at_credentials() {
  try {
    static_cast<void>(credentials_.files());
  } catch (const Error& error) {
    log_.error("{}", error.what());
  }
}

// The server, through which this is asked, comes after the adder and goes before it.
std::vector<api::MissingModel> Node::missing_models() {
  return models_->missing();
}

std::vector<ModelSetting> Node::models_of(const Settings& settings) const {
  std::vector<ModelSetting> models = settings.models;
  for (const catalog::Model& lost : catalog_.lost()) {
    models.push_back({.name = lost.name, .source = lost.source, .origin = "the catalog"});
  }
  return models;
}

api::ConfigDiff Node::difference(const LoadedSettings& wanted, const AtRunTime& now) const {
  api::ConfigDiff diff{.tenants = wanted.settings.tenants != now.tenants};
  for (const ModelChange& change : changes(catalog_.list(), wanted.settings.models)) {
    diff.models.push_back({.name = change.name,
                           .change = std::string(word(change.kind)),
                           .source = snapshot::shown_source(change.source)});
  }
  for (const EffectiveSetting& running : now.effective) {
    const auto configured =
        std::ranges::find(wanted.effective, running.name, &EffectiveSetting::name);
    if (configured == wanted.effective.end() || configured->value == running.value) continue;
    diff.settings.push_back({.name = running.name,
                             .running = running.value,
                             .configured = configured->value,
                             .origin = configured->origin,
                             .takes = taken_on_reload(running.name) ? "reload" : "restart"});
  }
  return diff;
}

api::ConfigDiff Node::config_diff() {
  const LoadedSettings wanted = configuration_.load();
  return difference(wanted, at_run_time_.with([](const AtRunTime& now) { return now; }));
}

/// What needs no restart, but for the models.
void Node::take_over(const LoadedSettings& wanted, AtRunTime& now) {
  cache_->set_tenants(wanted.settings.tenants);
  now.tenants = wanted.settings.tenants;
  fetcher_->set_bandwidth(
      {.fill = wanted.settings.fill_bandwidth, .write = wanted.settings.write_bandwidth});
  for (EffectiveSetting& running : now.effective) {
    const auto taken = std::ranges::find(wanted.effective, running.name, &EffectiveSetting::name);
    if (taken_on_reload(running.name) && taken != wanted.effective.end()) running = *taken;
  }
}

api::ConfigDiff Node::apply_settings() {
  const LoadedSettings wanted = configuration_.load();
  auto now = at_run_time_.lock();
  api::ConfigDiff diff = difference(wanted, *now);
  take_over(wanted, *now);
  now->mistake.clear();
  remember(wanted);
  models_->declare(models_of(wanted.settings));
  return diff;
}

api::ConfigDiff Node::reload() {
  api::ConfigDiff diff = apply_settings();
  models_->wait_until_tried(kModelPatience);
  add_outcomes(models_->outcomes(), diff.models);
  return diff;
}

void Node::reload_quietly() noexcept {
  try {
    const api::ConfigDiff diff = apply_settings();
    log_.info(
        "the configuration was read again: {} changes of models, {} settings that take a "
        "restart",
        diff.models.size(), std::ranges::count(diff.settings, "restart", &api::SettingDiff::takes));
  } catch (const std::exception& error) {
    log_.error("the configuration cannot be used, and nothing is changed: {}", error.what());
  }
}

void Node::set_mode(cache::Mode mode) {
  const auto change = at_run_time_.lock();
  if (mode == cache_->mode()) return;
  const bool prod = mode == cache::Mode::kProd;
  if (!prod && settings_.verify == fetch::Verify::kStrict) {
    throw Error(Errc::kUnsupported, "verify=strict needs the store, which this mode leaves alone");
  }
  if (prod && !store_.readable()) {
    // Readers are there: a disk that fails or is read-only is waited for, as by a successor.
    open_volumes(store_, settings_, Mount::kTakenOver);
    volume_returned();
  }
  // What is fetched meanwhile streams, which is right in every mode.
  fetcher_->set_keep(fetch::Keep::kMemoryOnly);
  cache_->set_mode(mode);
  fetcher_->set_keep(keep_of(mode));
  memory_.set_note(static_cast<std::uint32_t>(mode) + 1);
  if (!prod) {
    for (const snapshot::SnapshotPtr& snapshot : catalog_.snapshots()) {
      warmer_->stop(snapshot->key());
    }
  }
  log_.info("the mode is {} now", cache::name(mode));
}

control::FlipOutcome Node::flip(const std::string& name, const Digest& from,
                                control::Loaders loaders, const std::function<void()>& flip) {
  const bool ignored = loaders == control::Loaders::kIgnored;
  const auto outcome = filesystem_.flip(
      name, from, ignored ? vfs::LoadWatch::Loaders::kIgnored : vfs::LoadWatch::Loaders::kRespected,
      flip);
  if (outcome.flipped && !outcome.loader.empty()) {
    log_.warning("{} shows another revision while {} loads it: that may see files of both", name,
                 outcome.loader);
  }
  return {.flipped = outcome.flipped, .loader = outcome.loader};
}

void Node::unmount(control::Unmount how) {
  keeper_.unmount(how == control::Unmount::kLazy ? keeper::KeeperClient::Detach::kLazy
                                                 : keeper::KeeperClient::Detach::kNo);
}

}  // namespace weightfs::cli
