// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/thread.hpp"
#include "base/version.hpp"
#include "control/residency.hpp"
#include "control/service.hpp"

#include <unistd.h>
#include <chrono>
#include <utility>

namespace weightfs::control {

namespace {

constexpr std::chrono::seconds kSampleInterval{1};

const char* name_of(fetch::FillState state) noexcept {
  switch (state) {
    case fetch::FillState::kFilling:
      return "filling";
    case fetch::FillState::kComplete:
      return "complete";
    case fetch::FillState::kFailed:
      return "failed";
  }
  return "";
}

const char* name_of(fetch::Want want) noexcept {
  switch (want) {
    case fetch::Want::kDemand:
      return "demand";
    case fetch::Want::kBackground:
      return "background";
    case fetch::Want::kFile:
      return "file";
  }
  return "";
}

const char* name_of(store::VolumeState state) noexcept {
  switch (state) {
    case store::VolumeState::kUsable:
      return "ok";
    case store::VolumeState::kSetAside:
      return "set aside";
    case store::VolumeState::kNotOpened:
      return "not opened";
  }
  return "";
}

api::StoreStatus store_status(const store::Store& store) {
  const store::StoreUsage usage = store.usage();
  const std::vector<store::VolumeStatus> volumes = store.volumes();
  std::vector<api::VolumeStatus> statuses;
  for (const store::VolumeStatus& volume : volumes) {
    statuses.push_back({.directory = volume.directory.string(),
                        .state = name_of(volume.state),
                        .error = volume.error,
                        .bytes = volume.usage.bytes,
                        .capacity = volume.usage.capacity,
                        .free = volume.usage.free});
  }
  return {.directory = volumes.empty() ? std::string() : volumes.front().directory.string(),
          .bytes = usage.bytes,
          .blobs = usage.blobs,
          .capacity = usage.capacity,
          .free = usage.free,
          .partial_bytes = usage.partial_bytes,
          .evicted_open_bytes = usage.evicted_open_bytes,
          .quarantined = usage.quarantined,
          .error = store.writable() ? std::string() : store.trouble(),
          .degraded = store.trouble(),
          .volumes = std::move(statuses)};
}

api::PolicyStatus policy_status(const cache::GovernorStatus& status, const std::string& admission) {
  api::PolicyStatus policy{.admission = admission,
                           .limit = status.budget.capacity,
                           .used = status.budget.used,
                           .probation_limit = status.budget.probation,
                           .probation_bytes = status.probation_bytes,
                           .resident_bytes = status.resident_bytes,
                           .evictions = status.evictions,
                           .evicted_bytes = status.evicted_bytes,
                           .refused = status.refused};
  for (const auto& [guard, bytes] : status.kept) {
    policy.kept.push_back({.reason = policy::name(guard), .bytes = bytes});
  }
  for (const cache::TenantUse& tenant : status.tenants) {
    policy.tenants.push_back(
        {.name = tenant.name, .floor = tenant.floor, .cap = tenant.cap, .bytes = tenant.bytes});
  }
  return policy;
}

api::ShadowStatus shadow_status(const cache::ShadowCounts& counts) {
  return {.hits = counts.hits,
          .misses = counts.misses,
          .hit_bytes = counts.hit_bytes,
          .hit_rate = counts.hit_rate()};
}

api::LimitStatus limit_status(const fetch::LimitUse& use) {
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(use.waited);
  return {.bytes_per_second = use.rate, .waited_ms = static_cast<std::uint64_t>(waited.count())};
}

}  // namespace

Service::Service(Parts parts)
    : parts_(std::move(parts)),
      started_(std::chrono::steady_clock::now()),
      lease_events_(parts_.catalog, parts_.event_log == nullptr
                                        ? telemetry::Events()
                                        : telemetry::Events(*parts_.event_log)),
      lease_warmer_({.catalog = parts_.catalog,
                     .store = parts_.store,
                     .fetcher = parts_.fetcher,
                     .warmer = parts_.warmer,
                     .sources = parts_.sources,
                     .events = lease_events_,
                     .clock = parts_.clock}) {
  sampler_ = start_thread("rates", [this](std::stop_token stop) { sample_rates(std::move(stop)); });
}

void Service::sample_rates(std::stop_token stop) {
  do {
    RateTable::Counts counts;
    for (const fetch::FillPtr& fill : parts_.fetcher.fills()) {
      counts.emplace_back(fill->target().key(), fill->progress().received);
    }
    rates_.with([&](RateTable& rates) { rates.update(std::chrono::steady_clock::now(), counts); });
  } while (pause(stop, kSampleInterval));
}

api::Status Service::status() {
  const MountInfo mount = parts_.mount.mount_info();
  const vfs::Counters counters = parts_.mount.counters();
  const fetch::FetchCounters fetched = parts_.fetcher.counters();
  const std::chrono::duration<double> up = std::chrono::steady_clock::now() - started_;
  const auto decided = parts_.cache.status();
  return {
      .version = std::string(kVersion),
      .pid = ::getpid(),
      .keeper_pid = mount.keeper_pid,
      .uptime_seconds = static_cast<std::uint64_t>(up.count()),
      .mode = std::string(cache::name(parts_.cache.mode())),
      .mount = mount.mountpoint,
      .configuration_mistake = mount.configuration_mistake,
      .passthrough = {.active = mount.passthrough_active, .reason = mount.passthrough_reason},
      .store = store_status(parts_.store),
      .cache = {.hits = counters.hits,
                .misses = counters.misses,
                .hit_bytes = counters.hit_bytes,
                .miss_bytes = fetched.waited_bytes},
      .policy = decided ? policy_status(decided->governor, parts_.admission)
                        : api::PolicyStatus{.admission = parts_.admission},
      .shadow = decided && decided->shadow ? std::optional(shadow_status(*decided->shadow))
                                           : std::nullopt,
      .source = {.bytes = fetched.source_bytes,
                 .requests = fetched.requests,
                 .retries = fetched.retries},
      .bandwidth = {.fill = limit_status(fetched.source_limit),
                    .write = limit_status(fetched.disk_limit),
                    .prefetch = limit_status(fetched.background_limit)},
      .fuse = {.lookups = counters.lookups,
               .opens = counters.opens,
               .reads = counters.reads,
               .read_bytes = counters.read_bytes,
               .open_files = counters.open_files},
      .fetch = {.completed = fetched.completed,
                .failed = fetched.failed,
                .corrupt = fetched.corrupt},
      .events = events_status(),
      .models = parts_.catalog.list().size(),
      .missing_models = parts_.mount.missing_models(),
      .leases = leases(),
      .fills = fills(),
  };
}

api::ModeChange Service::set_mode(const std::string& mode) {
  const auto word =
      std::ranges::find(cache::kModeWords, mode, [](const auto& known) { return known.first; });
  if (word == cache::kModeWords.end()) {
    throw Error(Errc::kInvalid, fmt::format("'{}' is none of prod, off, shadow", mode));
  }
  const std::string from(cache::name(parts_.cache.mode()));
  parts_.mount.set_mode(word->second);
  put({.kind = telemetry::EventKind::kMode, .reason = fmt::format("from {} to {}", from, mode)});
  return {.from = from, .to = mode};
}

std::vector<api::FillStatus> Service::fills() {
  std::vector<api::FillStatus> all;
  for (const fetch::FillPtr& fill : parts_.fetcher.fills()) {
    // One that is complete is served from its blob: nothing is being fetched.
    if (fill->progress().state != fetch::FillState::kComplete) all.push_back(fill_status(*fill));
  }
  return all;
}

api::FillStatus Service::fill_status(const fetch::Fill& fill) const {
  const fetch::FillProgress progress = fill.progress();
  const fetch::Target& target = fill.target();
  const std::string name = name_of(*target.snapshot);
  api::FillStatus status{
      .name = name,
      .path = target.file().path,
      .also = others_with(target, name),
      .state = control::name_of(progress.state),
      .want = control::name_of(progress.want),
      .size = progress.size,
      .written = progress.written,
      .hashed = progress.hashed,
      .received = progress.received,
      .rate = rates_.with([&](const RateTable& rates) { return rates.rate(target.key()); }),
      .parked = progress.parked,
      .connections = progress.connections,
      .streaming = progress.streaming,
  };
  if (const auto error = fill.error()) {
    status.error = api::Fault{weightfs::name(error->code()), error->what()};
  }
  return status;
}

/// But for the file of the target under `name`.
std::vector<std::string> Service::others_with(const fetch::Target& target,
                                              const std::string& name) const {
  const snapshot::File& wanted = target.file();
  std::vector<std::string> others;
  for (const catalog::Model& model : parts_.catalog.list()) {
    const snapshot::SnapshotPtr snapshot = parts_.catalog.snapshot(model.current);
    if (!snapshot) continue;
    const bool same_snapshot = model.current == target.snapshot->key();
    for (const snapshot::File& file : snapshot->files()) {
      const bool same_file = same_snapshot && file.path == wanted.path;
      if (same_file ? model.name == name : !file.sha256 || file.sha256 != wanted.sha256) continue;
      others.push_back(model.name + "/" + file.path);
    }
  }
  return others;
}

std::string Service::name_of(const snapshot::Snapshot& snapshot) const {
  std::string known;
  for (const catalog::Model& model : parts_.catalog.list()) {
    if (model.current == snapshot.key()) return model.name;
    for (const Digest& revision : model.revisions) {
      if (revision == snapshot.key()) known = model.name + "@" + snapshot.revision();
    }
  }
  return known;
}

api::Progress Service::progress(const std::string& name) {
  const catalog::Model model = require(name);
  const snapshot::SnapshotPtr snapshot = current(model);
  const auto warm = parts_.warmer.progress(snapshot->key());
  const Residency resident = residency(parts_.store, parts_.fetcher, snapshot);
  // Between the last byte and the moment when the digests that were learned are written down.
  const bool learning = warm && !warm->running && !warm->error && snapshot->provisional() &&
                        warm->files_complete == warm->files;
  api::Progress progress{
      .name = name,
      .bytes = snapshot->bytes(),
      .written = resident.bytes,
      .verified = resident.verified,
      .files = snapshot->files().size(),
      .files_complete = resident.files_complete,
      .complete = resident.complete,
      .running = warm && (warm->running || learning) && !resident.complete,
  };
  if (warm && warm->error && !resident.complete) {
    progress.error = api::Fault{weightfs::name(warm->error->code()), warm->error->what()};
  }
  return progress;
}

}  // namespace weightfs::control
