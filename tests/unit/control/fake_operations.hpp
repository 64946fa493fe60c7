// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/synchronized.hpp"
#include "base/timestamp.hpp"
#include "control/operations.hpp"
#include "fake_answers.hpp"

#include <algorithm>
#include <condition_variable>
#include <string>
#include <vector>

namespace weightfs::tests {

/// A daemon of plain values: knows the models it is given, records what it was asked, and can hold
/// its long operations at a gate.
class FakeOperations final : public control::Operations {
 public:
  struct State {
    api::Status status;
    std::vector<api::Model> models;
    std::vector<api::ModelFile> files;
    std::vector<api::Progress> progress;  ///< one per call, the last one again and again
    api::VerifyResult verified;
    api::Why why;
    std::vector<api::EventPage> pages;  ///< one per call, then empty ones
    std::vector<std::string> calls;
    bool gate_closed = false;
    bool waiting_ended = false;
    bool mount_busy = false;
  };

  Synchronized<State> state;

  void open_gate() {
    state.with([](State& s) { s.gate_closed = false; });
    gate_.notify_all();
  }
  [[nodiscard]] std::vector<std::string> calls() {
    return state.with([](State& s) { return s.calls; });
  }

  api::Status status() override {
    record("status");
    return state.with([](State& s) { return s.status; });
  }
  std::vector<api::FillStatus> fills() override {
    return state.with([](State& s) { return s.status.fills; });
  }
  std::vector<api::Model> models() override {
    return state.with([](State& s) { return s.models; });
  }
  api::ModelDetail model(const std::string& name) override {
    return {find(name), state.with([](State& s) { return s.files; })};
  }
  api::Progress progress(const std::string& name) override {
    record("progress " + name);
    (void)find(name);
    return next_progress();
  }
  api::Why why(const std::string& path) override {
    record("why " + path);
    return state.with([](State& s) { return s.why; });
  }

  api::EventPage events(const api::EventQuery& query) override {
    record("events since " + (query.since ? std::to_string(*query.since) : "none") + " limit " +
           std::to_string(query.limit) + " wait " + std::to_string(query.wait_seconds));
    return state.with([&](State& s) {
      if (s.pages.empty()) return api::EventPage{.last = query.since.value_or(0)};
      api::EventPage page = s.pages.front();
      s.pages.erase(s.pages.begin());
      return page;
    });
  }
  void end_waiting() noexcept override {
    state.with([](State& s) { s.waiting_ended = true; });
  }

  api::Model add(const api::AddRequest& request, const control::Job& job) override {
    record(call_of(request));
    pass_gate(job, {"resolving", 0, 0});
    if (request.source.ends_with("missing")) throw Error(Errc::kNotFound, "no such source");
    if (request.source.ends_with("away")) throw TransientError(Errc::kUnavailable, "no answer");
    const api::Model model{.name = request.name, .source = request.source, .file_count = 4};
    state.with([&](State& s) { s.models.push_back(model); });
    return model;
  }
  api::UpdateResult update(const std::string& name, const control::UpdateHow& how,
                           const control::Job& job) override {
    record(call_of(name, how));
    (void)find(name);
    pass_gate(job, {"fetching", 5, 10});
    return {.name = name, .changed = true, .from = "old", .to = "new"};
  }
  api::ImportResult import_files(const api::ImportRequest& request,
                                 const control::Job& job) override {
    record(call_of(request));
    pass_gate(job, {"importing", 1, 2});
    return fake_import(request);
  }
  api::VerifyResult verify(const std::string& name, const control::Job& job) override {
    record("verify " + name);
    pass_gate(job, {"verifying", 1, 2});
    return state.with([](State& s) { return s.verified; });
  }

  api::Freed remove(const std::string& name, control::DryRun dry_run) override {
    return freed("remove ", name, dry_run);
  }
  api::Freed evict(const std::string& name, control::Shared shared,
                   control::DryRun dry_run) override {
    if (find(name).pinned) throw Error(Errc::kBusy, name + " is pinned");
    return freed(shared == control::Shared::kEvict ? "evict shared " : "evict ", name, dry_run);
  }
  api::Pruned prune(const std::string& name, std::uint64_t keep, control::DryRun dry_run) override {
    if (!name.empty()) (void)find(name);
    record("prune " + name + " " + std::to_string(keep) +
           (dry_run == control::DryRun::kYes ? " dry" : ""));
    return fake_prune(dry_run == control::DryRun::kYes);
  }
  api::Progress warm(const std::string& name) override {
    record("warm " + name);
    (void)find(name);
    return next_progress();
  }
  api::Model pin(const std::string& name, const api::PinRequest& request) override {
    record("pin " + name + " " + request.reason);
    api::Model model = find(name);
    model.pinned = true;
    model.pin_reason = request.reason;
    model.pin_owner = request.owner;
    model.pin_until = request.until.empty() ? 0 : parse_timestamp(request.until);
    return model;
  }
  api::Model unpin(const std::string& name) override {
    record("unpin " + name);
    return find(name);
  }
  api::Model confirm(const std::string& name) override {
    record("confirm " + name);
    return find(name);
  }
  api::UpdateResult rollback(const std::string& name) override {
    record("rollback " + name);
    (void)find(name);
    return {.name = name, .changed = true, .from = "b", .to = "a"};
  }
  api::UpdateResult resource(const api::AddRequest& request, const control::Job&) override {
    record("resource " + request.name + " " + request.source);
    return {.name = request.name, .changed = true};
  }
  api::ConfigDiff reload() override {
    record("reload");
    return diff;
  }
  api::ConfigDiff config_diff() override { return diff; }
  api::ConfigDiff diff;
  api::ModeChange set_mode(const std::string& mode) override {
    record("mode " + mode);
    return {.from = "prod", .to = mode};
  }
  std::vector<api::Lease> leases() override {
    return state.with([](State& s) { return s.status.leases; });
  }
  api::Lease lease(const std::string& id) override {
    for (const api::Lease& lease : leases()) {
      if (lease.id == id) return lease;
    }
    throw Error(Errc::kNotFound, "there is no lease " + id);
  }
  api::Lease put_lease(const std::string& id, const api::LeaseRequest& request,
                       std::optional<uid_t> user) override {
    std::string artifacts;
    for (const std::string& artifact : request.artifacts) artifacts += " " + artifact;
    record("lease " + id + artifacts + " from " + request.not_before + " until " + request.until);
    const api::Lease lease{.id = id,
                           .artifacts = request.artifacts,
                           .not_before = request.not_before,
                           .until = request.until,
                           .bandwidth = request.bandwidth,
                           .priority = request.priority,
                           .owner = request.owner,
                           .user = user,
                           .bytes = 10,
                           .missing_bytes = 5,
                           .at_risk = true,
                           .snapshots = {}};
    state.with([&](State& s) {
      std::erase_if(s.status.leases, [&](const api::Lease& one) { return one.id == id; });
      s.status.leases.push_back(lease);
    });
    return lease;
  }
  void remove_lease(const std::string& id, std::optional<uid_t>) override {
    (void)lease(id);
    record("end lease " + id);
    state.with([&](State& s) {
      std::erase_if(s.status.leases, [&](const api::Lease& one) { return one.id == id; });
    });
  }
  void unmount(control::Unmount how) override {
    const bool lazy = how == control::Unmount::kLazy;
    record(lazy ? "unmount lazy" : "unmount");
    if (!lazy && state.with([](State& s) { return s.mount_busy; })) {
      throw Error(Errc::kBusy, "the mount is in use");
    }
  }

 private:
  void record(std::string call) {
    state.with([&](State& s) { s.calls.push_back(std::move(call)); });
  }
  api::Model find(const std::string& name) {
    return state.with([&](State& s) {
      const auto found = std::ranges::find(s.models, name, &api::Model::name);
      if (found == s.models.end()) throw Error(Errc::kNotFound, "there is no model " + name);
      return *found;
    });
  }
  api::Progress next_progress() {
    return state.with([](State& s) {
      if (s.progress.empty()) return api::Progress{};
      const api::Progress now = s.progress.front();
      if (s.progress.size() > 1) s.progress.erase(s.progress.begin());
      return now;
    });
  }
  api::Freed freed(const char* what, const std::string& name, control::DryRun dry_run) {
    const bool dry = dry_run == control::DryRun::kYes;
    record(what + name + (dry ? " dry" : ""));
    (void)find(name);
    return {.name = name, .dry_run = dry, .blobs = 3, .bytes = 3'000'000'000};
  }
  void pass_gate(const control::Job& job, const api::JobProgress& progress) {
    job.report(progress);
    auto s = state.lock();
    if (!s.wait(gate_, job.stop, [&] { return !s->gate_closed; })) {
      throw Error(Errc::kCancelled, "the daemon is stopping");
    }
  }

  std::condition_variable_any gate_;
};

}  // namespace weightfs::tests
