// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "weightfs/values.hpp"

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

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
}

void each_field(IsValue<api::SourceStatus> auto& value, auto&& visit) {
  visit("bytes", value.bytes);
  visit("requests", value.requests);
  visit("retries", value.retries);
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
  visit("passthrough", value.passthrough);
  visit("store", value.store);
  visit("cache", value.cache);
  visit("policy", value.policy);
  visit("source", value.source);
  visit("fuse", value.fuse);
  visit("fetch", value.fetch);
  visit("models", value.models);
  visit("missing_models", value.missing_models);
  visit("fills", value.fills);
}

void each_field(IsValue<api::Model> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("source", value.source);
  visit("revision", value.revision);
  visit("snapshot", value.snapshot);
  visit("key", value.key);
  visit("provisional", value.provisional);
  visit("bytes", value.bytes);
  visit("resident_bytes", value.resident_bytes);
  visit("complete", value.complete);
  visit("pinned", value.pinned);
  visit("pin_reason", value.pin_reason);
  visit("file_count", value.file_count);
  visit("revisions", value.revisions);
  visit("added", value.added);
  visit("updated", value.updated);
}

void each_field(IsValue<api::ModelFile> auto& value, auto&& visit) {
  visit("path", value.path);
  visit("size", value.size);
  visit("sha256", value.sha256);
  visit("resident_bytes", value.resident_bytes);
  visit("complete", value.complete);
}

void each_field(IsValue<api::ModelDetail> auto& value, auto&& visit) {
  each_field(value.model, visit);
  visit("files", value.files);
}

void each_field(IsValue<api::Progress> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("bytes", value.bytes);
  visit("written", value.written);
  visit("verified", value.verified);
  visit("files", value.files);
  visit("files_complete", value.files_complete);
  visit("complete", value.complete);
  visit("running", value.running);
  visit("error", value.error);
}

void each_field(IsValue<api::UpdateResult> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("changed", value.changed);
  visit("from", value.from);
  visit("to", value.to);
}

void each_field(IsValue<api::Freed> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("dry_run", value.dry_run);
  visit("blobs", value.blobs);
  visit("bytes", value.bytes);
  visit("shared_blobs", value.shared_blobs);
  visit("shared_bytes", value.shared_bytes);
}

void each_field(IsValue<api::CorruptBlob> auto& value, auto&& visit) {
  visit("sha256", value.sha256);
  visit("files", value.files);
}

void each_field(IsValue<api::VerifyResult> auto& value, auto&& visit) {
  visit("blobs", value.blobs);
  visit("bytes", value.bytes);
  visit("corrupt", value.corrupt);
}

void each_field(IsValue<api::Why> auto& value, auto&& visit) {
  visit("path", value.path);
  visit("state", value.state);
  visit("sentence", value.sentence);
  visit("next_step", value.next_step);
  visit("name", value.name);
  visit("file", value.file);
  visit("source", value.source);
  visit("revision", value.revision);
  visit("sha256", value.sha256);
  visit("size", value.size);
  visit("resident_bytes", value.resident_bytes);
  visit("fill", value.fill);
  visit("error", value.error);
}

void each_field(IsValue<api::JobProgress> auto& value, auto&& visit) {
  visit("stage", value.stage);
  visit("bytes", value.bytes);
  visit("total", value.total);
}

void each_field(IsValue<api::AddRequest> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("source", value.source);
}

void each_field(IsValue<api::PinRequest> auto& value, auto&& visit) {
  visit("reason", value.reason);
}

void each_field(IsValue<api::UnmountRequest> auto& value, auto&& visit) {
  visit("lazy", value.lazy);
}

}  // namespace weightfs::control
