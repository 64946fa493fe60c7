// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/status_text.hpp"

#include "base/quantity.hpp"
#include "cli/lease_text.hpp"
#include "cli/printable.hpp"

#include <fmt/format.h>

#include <string_view>

namespace weightfs::cli {

namespace {

std::string line(std::string_view subject, std::string_view text) {
  return fmt::format("{:<8}  {}\n", subject, printable(text));
}

/// Nothing where there is no limit.
std::string limit_line(std::string_view subject, const api::LimitStatus& limit) {
  if (limit.bytes_per_second == 0) return "";
  return line(
      subject,
      fmt::format("at most {}, for which fills waited {}", exact_rate(limit.bytes_per_second),
                  readable_duration(std::chrono::seconds(limit.waited_ms / 1000))));
}

std::string mount_text(const api::Status& status) {
  if (status.mount.empty()) return "none";
  if (status.passthrough.active) return status.mount + ", passthrough active";
  return fmt::format("{}, no passthrough: {}", status.mount, status.passthrough.reason);
}

std::string store_text(const api::StoreStatus& store) {
  if (store.volumes.empty()) return "not open";
  std::string directories;
  for (const api::VolumeStatus& volume : store.volumes) {
    directories += (directories.empty() ? "" : ", ") + volume.directory;
  }
  std::string text =
      fmt::format("{}: {} in {} files, {} free of {}", directories, readable_size(store.bytes),
                  store.blobs, readable_size(store.free), readable_size(store.capacity));
  if (store.partial_bytes > 0) {
    text += fmt::format(", {} for files being fetched", readable_size(store.partial_bytes));
  }
  if (store.evicted_open_bytes > 0) {
    text += fmt::format(", {} evicted but still open", readable_size(store.evicted_open_bytes));
  }
  if (store.quarantined > 0) text += fmt::format(", {} in quarantine", store.quarantined);
  return text;
}

std::string shadow_text(const api::ShadowStatus& shadow) {
  return fmt::format("with a cache {} hits ({} saved), {} misses: {:.1f} % hits", shadow.hits,
                     readable_size(shadow.hit_bytes), shadow.misses, shadow.hit_rate * 100);
}

std::string volume_text(const api::VolumeStatus& volume) {
  return fmt::format("{}: {}, {} in files, {} free of {}", volume.directory, volume.state,
                     readable_size(volume.bytes), readable_size(volume.free),
                     readable_size(volume.capacity));
}

std::string policy_text(const api::PolicyStatus& policy) {
  if (policy.limit == 0) return policy.admission + ", nothing is kept";
  std::string text =
      fmt::format("{}, {} of at most {}; {} on probation of at most {}", policy.admission,
                  readable_size(policy.used), readable_size(policy.limit),
                  readable_size(policy.probation_bytes), readable_size(policy.probation_limit));
  if (policy.evicted_bytes > 0) {
    text += fmt::format("; evicted {} models, {}", policy.evictions,
                        readable_size(policy.evicted_bytes));
  }
  if (policy.refused > 0) text += fmt::format("; no room for {} files", policy.refused);
  for (const api::KeptBytes& kept : policy.kept) {
    text += fmt::format(", {} {}", readable_size(kept.bytes), kept.reason);
  }
  return text;
}

std::string fill_text(const api::FillStatus& fill) {
  const std::uint64_t percent =
      fill.size == 0 ? 100
                     : static_cast<std::uint64_t>(static_cast<double>(fill.written) * 100 /
                                                  static_cast<double>(fill.size));
  std::string also;
  if (!fill.also.empty()) also = fmt::format(" (also {}", fill.also.front());
  if (fill.also.size() > 1) also += fmt::format(" and {} more", fill.also.size() - 1);
  if (!also.empty()) also += ")";
  std::string text =
      fmt::format("{}/{}{}  {}%  {} of {}  {}/s  {} connections", fill.name, fill.path, also,
                  percent, readable_size(fill.written), readable_size(fill.size),
                  readable_size(fill.rate), fill.connections);
  if (fill.parked > 0) text += fmt::format(", {} reads wait", fill.parked);
  if (fill.streaming) text += ", past the disk";
  if (fill.error) text += ": " + fill.error->message;
  return text;
}

}  // namespace

std::string status_text(const api::Status& status) {
  std::string text =
      line("daemon", fmt::format("weightfs {}, pid {}, keeper {}, up {}, mode {}", status.version,
                                 status.pid, status.keeper_pid,
                                 readable_duration(std::chrono::seconds(status.uptime_seconds)),
                                 status.mode));
  text += line("mount", mount_text(status));
  if (!status.configuration_mistake.empty()) {
    text += line("configuration", "as it was before: " + status.configuration_mistake);
  }
  text += line("store", store_text(status.store));
  if (!status.store.degraded.empty()) {
    text += line("degraded", fmt::format("{}{}", status.store.degraded,
                                         status.store.error.empty() ? "" : "; nothing is kept"));
  }
  for (const api::VolumeStatus& volume : status.store.volumes) {
    if (status.store.volumes.size() > 1) text += line("disk", volume_text(volume));
  }
  text += line("policy", policy_text(status.policy));
  for (const api::TenantStatus& tenant : status.policy.tenants) {
    text += line("tenant", fmt::format("{}: {}, of at least {} and at most {}", tenant.name,
                                       readable_size(tenant.bytes), readable_size(tenant.floor),
                                       readable_size(tenant.cap)));
  }
  if (status.shadow) text += line("shadow", shadow_text(*status.shadow));
  if (status.mode != "prod") {
    text += line("kept",
                 "nothing: also a page of a mapped file that the kernel drops comes from "
                 "its source again");
  }
  text += line("models", fmt::format("{}", status.models));
  for (const api::MissingModel& model : status.missing_models) {
    text += line("missing", fmt::format("{}: {}{}", model.name, model.error.message,
                                        model.retrying ? "; trying again" : ""));
  }
  text += line("cache", fmt::format("{} hits ({}), {} misses (readers waited for {})",
                                    status.cache.hits, readable_size(status.cache.hit_bytes),
                                    status.cache.misses, readable_size(status.cache.miss_bytes)));
  text += line("source",
               fmt::format("{} in {} requests, {} retries", readable_size(status.source.bytes),
                           status.source.requests, status.source.retries));
  text += limit_line("fetched", status.bandwidth.fill);
  text += limit_line("written", status.bandwidth.write);
  text += limit_line("prefetch", status.bandwidth.prefetch);
  text += line("fuse", fmt::format("{} opens, {} reads ({}), {} files open", status.fuse.opens,
                                   status.fuse.reads, readable_size(status.fuse.read_bytes),
                                   status.fuse.open_files));
  if (status.fetch.failed > 0 || status.fetch.corrupt > 0) {
    text += line("fetch",
                 fmt::format("{} files completed, {} failed, {} of them corrupt",
                             status.fetch.completed, status.fetch.failed, status.fetch.corrupt));
  }
  for (const api::Lease& lease : status.leases) text += line("lease", lease_text(lease));
  if (status.events.dropped > 0 || !status.events.error.empty()) {
    text +=
        line("events", fmt::format("{} recorded, {} of them not in the log{}{}",
                                   status.events.recorded, status.events.dropped,
                                   status.events.error.empty() ? "" : ": ", status.events.error));
  }
  for (const api::FillStatus& fill : status.fills) text += line("filling", fill_text(fill));
  return text;
}

}  // namespace weightfs::cli
