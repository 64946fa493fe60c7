// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/status.hpp"

#include <concepts>
#include <type_traits>

namespace weightfs::control {

/// The members of each value and their JSON keys, once, for reading and for writing: `visit` gets
/// (key, member) of each. A const value gives const members.
template <class Value, class Type>
concept IsValue = std::same_as<std::remove_const_t<Value>, Type>;

void each_field(IsValue<api::Fault> auto& value, auto&& visit) {
  visit("code", value.code);
  visit("message", value.message);
}

void each_field(IsValue<api::Passthrough> auto& value, auto&& visit) {
  visit("active", value.active);
  visit("reason", value.reason);
}

void each_field(IsValue<api::VolumeStatus> auto& value, auto&& visit) {
  visit("directory", value.directory);
  visit("state", value.state);
  visit("error", value.error);
  visit("bytes", value.bytes);
  visit("capacity", value.capacity);
  visit("free", value.free);
}

void each_field(IsValue<api::StoreStatus> auto& value, auto&& visit) {
  visit("directory", value.directory);
  visit("bytes", value.bytes);
  visit("blobs", value.blobs);
  visit("capacity", value.capacity);
  visit("free", value.free);
  visit("partial_bytes", value.partial_bytes);
  visit("evicted_open_bytes", value.evicted_open_bytes);
  visit("quarantined", value.quarantined);
  visit("error", value.error);
  visit("degraded", value.degraded);
  visit("volumes", value.volumes);
}

void each_field(IsValue<api::CacheStatus> auto& value, auto&& visit) {
  visit("hits", value.hits);
  visit("misses", value.misses);
  visit("hit_bytes", value.hit_bytes);
  visit("miss_bytes", value.miss_bytes);
}

void each_field(IsValue<api::KeptBytes> auto& value, auto&& visit) {
  visit("reason", value.reason);
  visit("bytes", value.bytes);
}

void each_field(IsValue<api::TenantStatus> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("floor", value.floor);
  visit("cap", value.cap);
  visit("bytes", value.bytes);
}

void each_field(IsValue<api::ShadowStatus> auto& value, auto&& visit) {
  visit("hits", value.hits);
  visit("misses", value.misses);
  visit("hit_bytes", value.hit_bytes);
  visit("hit_rate", value.hit_rate);
}

void each_field(IsValue<api::PolicyStatus> auto& value, auto&& visit) {
  visit("admission", value.admission);
  visit("limit", value.limit);
  visit("used", value.used);
  visit("probation_limit", value.probation_limit);
  visit("probation_bytes", value.probation_bytes);
  visit("resident_bytes", value.resident_bytes);
  visit("evictions", value.evictions);
  visit("evicted_bytes", value.evicted_bytes);
  visit("refused", value.refused);
  visit("kept", value.kept);
  visit("tenants", value.tenants);
}

void each_field(IsValue<api::SourceStatus> auto& value, auto&& visit) {
  visit("bytes", value.bytes);
  visit("requests", value.requests);
  visit("retries", value.retries);
}

void each_field(IsValue<api::LimitStatus> auto& value, auto&& visit) {
  visit("bytes_per_second", value.bytes_per_second);
  visit("waited_ms", value.waited_ms);
}

void each_field(IsValue<api::BandwidthStatus> auto& value, auto&& visit) {
  visit("fill", value.fill);
  visit("write", value.write);
  visit("prefetch", value.prefetch);
}

void each_field(IsValue<api::FuseStatus> auto& value, auto&& visit) {
  visit("lookups", value.lookups);
  visit("opens", value.opens);
  visit("reads", value.reads);
  visit("read_bytes", value.read_bytes);
  visit("open_files", value.open_files);
}

void each_field(IsValue<api::FetchStatus> auto& value, auto&& visit) {
  visit("completed", value.completed);
  visit("failed", value.failed);
  visit("corrupt", value.corrupt);
}

void each_field(IsValue<api::EventsStatus> auto& value, auto&& visit) {
  visit("recorded", value.recorded);
  visit("dropped", value.dropped);
  visit("error", value.error);
}

void each_field(IsValue<api::FillStatus> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("path", value.path);
  visit("also", value.also);
  visit("state", value.state);
  visit("want", value.want);
  visit("size", value.size);
  visit("written", value.written);
  visit("hashed", value.hashed);
  visit("received", value.received);
  visit("rate", value.rate);
  visit("parked", value.parked);
  visit("connections", value.connections);
  visit("streaming", value.streaming);
  visit("error", value.error);
}

void each_field(IsValue<api::MissingModel> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("error", value.error);
  visit("retrying", value.retrying);
}

void each_field(IsValue<api::Status> auto& value, auto&& visit) {
  visit("version", value.version);
  visit("pid", value.pid);
  visit("keeper_pid", value.keeper_pid);
  visit("uptime_seconds", value.uptime_seconds);
  visit("mode", value.mode);
  visit("mount", value.mount);
  visit("configuration_mistake", value.configuration_mistake);
  visit("passthrough", value.passthrough);
  visit("store", value.store);
  visit("cache", value.cache);
  visit("policy", value.policy);
  visit("shadow", value.shadow);
  visit("source", value.source);
  visit("bandwidth", value.bandwidth);
  visit("fuse", value.fuse);
  visit("fetch", value.fetch);
  visit("events", value.events);
  visit("models", value.models);
  visit("missing_models", value.missing_models);
  visit("leases", value.leases);
  visit("fills", value.fills);
}

}  // namespace weightfs::control
