// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "control/status_fields.hpp"
#include "weightfs/events.hpp"
#include "weightfs/values.hpp"

namespace weightfs::control {

// As in status_fields.hpp, for all other values.

void each_field(IsValue<api::Revision> auto& value, auto&& visit) {
  visit("revision", value.revision);
  visit("snapshot", value.snapshot);
  visit("key", value.key);
  visit("reference", value.reference);
  visit("current", value.current);
  visit("confirmed", value.confirmed);
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
  visit("confirmed", value.confirmed);
  visit("rollback", value.rollback);
  visit("pinned", value.pinned);
  visit("pin_reason", value.pin_reason);
  visit("pin_owner", value.pin_owner);
  visit("pin_until", value.pin_until);
  visit("file_count", value.file_count);
  visit("revisions", value.revisions);
  visit("known_revisions", value.known_revisions);
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
  visit("loader", value.loader);
}

void each_field(IsValue<api::Freed> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("dry_run", value.dry_run);
  visit("blobs", value.blobs);
  visit("bytes", value.bytes);
  visit("shared_blobs", value.shared_blobs);
  visit("shared_bytes", value.shared_bytes);
}

void each_field(IsValue<api::OldRevision> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("revision", value.revision);
  visit("key", value.key);
  visit("kept", value.kept);
}

void each_field(IsValue<api::Pruned> auto& value, auto&& visit) {
  visit("dry_run", value.dry_run);
  visit("removed", value.removed);
  visit("kept", value.kept);
  visit("blobs", value.blobs);
  visit("bytes", value.bytes);
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

void each_field(IsValue<api::FileCount> auto& value, auto&& visit) {
  visit("files", value.files);
  visit("bytes", value.bytes);
}

void each_field(IsValue<api::ImportedFile> auto& value, auto&& visit) {
  visit("path", value.path);
  visit("file", value.file);
  visit("sha256", value.sha256);
  visit("size", value.size);
  visit("how", value.how);
}

void each_field(IsValue<api::ImportFault> auto& value, auto&& visit) {
  visit("path", value.path);
  visit("code", value.code);
  visit("message", value.message);
}

void each_field(IsValue<api::ImportResult> auto& value, auto&& visit) {
  visit("dry_run", value.dry_run);
  visit("taken", value.taken);
  visit("reflinked", value.reflinked);
  visit("linked", value.linked);
  visit("copied", value.copied);
  visit("present", value.present);
  visit("unknown", value.unknown);
  visit("fetching", value.fetching);
  visit("mismatched", value.mismatched);
  visit("failed", value.failed);
  visit("passed_over", value.passed_over);
  visit("without_digest", value.without_digest);
  visit("files", value.files);
  visit("faults", value.faults);
}

void each_field(IsValue<api::ImportRequest> auto& value, auto&& visit) {
  visit("directory", value.directory);
  visit("names", value.names);
  visit("link", value.link);
  visit("dry_run", value.dry_run);
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

void each_field(IsValue<api::Event> auto& value, auto&& visit) {
  visit("seq", value.seq);
  visit("time", value.time);
  visit("event", value.event);
  visit("action", value.action);
  visit("name", value.name);
  visit("snapshot", value.snapshot);
  visit("path", value.path);
  visit("source", value.source);
  visit("consumer", value.consumer);
  visit("lease", value.lease);
  visit("bytes", value.bytes);
  visit("reason", value.reason);
  visit("hit_rate", value.hit_rate);
  visit("saved_bytes", value.saved_bytes);
}

void each_field(IsValue<api::EventPage> auto& value, auto&& visit) {
  visit("events", value.events);
  visit("last", value.last);
  visit("missed", value.missed);
}

void each_field(IsValue<api::JobProgress> auto& value, auto&& visit) {
  visit("stage", value.stage);
  visit("bytes", value.bytes);
  visit("total", value.total);
}

void each_field(IsValue<api::AddRequest> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("source", value.source);
  visit("allow_missing", value.allow_missing);
  visit("expect", value.expect);
}

void each_field(IsValue<api::PinRequest> auto& value, auto&& visit) {
  visit("reason", value.reason);
  visit("owner", value.owner);
  visit("until", value.until);
}

void each_field(IsValue<api::SettingDiff> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("running", value.running);
  visit("configured", value.configured);
  visit("origin", value.origin);
  visit("takes", value.takes);
}

void each_field(IsValue<api::ModelDiff> auto& value, auto&& visit) {
  visit("name", value.name);
  visit("change", value.change);
  visit("source", value.source);
  visit("outcome", value.outcome);
  visit("reason", value.reason);
}

void each_field(IsValue<api::ConfigDiff> auto& value, auto&& visit) {
  visit("models", value.models);
  visit("tenants", value.tenants);
  visit("settings", value.settings);
}

void each_field(IsValue<api::ModeRequest> auto& value, auto&& visit) {
  visit("mode", value.mode);
}

void each_field(IsValue<api::ModeChange> auto& value, auto&& visit) {
  visit("from", value.from);
  visit("to", value.to);
}

void each_field(IsValue<api::UnmountRequest> auto& value, auto&& visit) {
  visit("lazy", value.lazy);
}

}  // namespace weightfs::control
