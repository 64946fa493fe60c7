// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/model_reconciler.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "base/thread.hpp"
#include "snapshot/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace weightfs::cli {

namespace {

using Kind = ModelChange::Kind;

/// Of what needs a source; and of what only waits for people here to let it go.
constexpr std::chrono::seconds kRetry{10};
constexpr std::chrono::seconds kRetryHere{1};

std::vector<api::MissingModel> all_of(const std::vector<ModelSetting>& models) {
  std::vector<api::MissingModel> all;
  for (const ModelSetting& model : models) {
    all.push_back({.name = model.name,
                   .error = {name(Errc::kNotReady), "its source has not answered yet"},
                   .retrying = true});
  }
  return all;
}

/// How far something is, for who is told that it is not done.
std::string stage_text(const api::JobProgress& progress) {
  if (progress.total == 0) return progress.stage;
  return fmt::format("{}, {} of {}", progress.stage, readable_size(progress.bytes),
                     readable_size(progress.total));
}

}  // namespace

ModelReconciler::ModelReconciler(Parts parts, std::vector<ModelSetting> models, Log log)
    : parts_(std::move(parts)), log_(std::move(log)) {
  state_.with([&](State& state) {
    state.missing = all_of(models);
    state.models = std::move(models);
  });
  thread_ = start_thread("models", [this](const std::stop_token& stop) { run(stop); });
}

void ModelReconciler::declare(std::vector<ModelSetting> models) {
  state_.with([&](State& state) {
    state.missing = all_of(models);
    state.models = std::move(models);
    state.outcomes.clear();
    ++state.declared;
  });
  changed_.notify_all();
}

void ModelReconciler::wait_until_tried(std::chrono::milliseconds patience) const {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  auto state = state_.lock();
  state.wait_until(changed_, deadline, [&] { return state->tried == state->declared; });
}

std::vector<ModelReconciler::Outcome> ModelReconciler::outcomes() const {
  return state_.with([](const State& state) { return state.outcomes; });
}

bool ModelReconciler::first_try() const {
  return state_.with([&](const State& state) { return state.tried != at_; });
}

void ModelReconciler::note_outcome(const ModelChange& change, Done done,
                                   const std::string& reason) {
  state_.with([&](State& state) {
    if (state.declared != at_ || state.tried == at_) return;
    const auto known = std::ranges::find(state.outcomes, change, &Outcome::change);
    Outcome& outcome = known == state.outcomes.end() ? state.outcomes.emplace_back() : *known;
    outcome = {.change = change, .done = done, .reason = reason};
  });
}

void ModelReconciler::run(const std::stop_token& stop) {
  std::set<std::string> given_up;
  std::uint64_t done = 0;
  while (!stop.stop_requested()) {
    const auto [models, declared] =
        state_.with([](const State& state) { return std::pair(state.models, state.declared); });
    if (declared != done) given_up.clear();
    at_ = declared;
    const auto again = reconcile(models, given_up, stop);
    done = declared;
    state_.with([&](State& state) { state.tried = done; });
    changed_.notify_all();

    auto state = state_.lock();
    const auto is_new = [&] { return state->declared != done; };
    if (again) {
      state.wait_until(changed_, stop, std::chrono::steady_clock::now() + *again, is_new);
    } else {
      state.wait(changed_, stop, is_new);
    }
  }
}

std::optional<std::chrono::seconds> ModelReconciler::reconcile(
    const std::vector<ModelSetting>& models, std::set<std::string>& given_up,
    const std::stop_token& stop) {
  std::set<std::string> later;
  std::optional<std::chrono::seconds> again;
  for (const ModelChange& change : changes(parts_.catalog.list(), models)) {
    if (stop.stop_requested()) break;
    // What is to be done to a model comes after what could not be done.
    if (given_up.contains(change.name) || later.contains(change.name)) {
      const Done before = later.contains(change.name) ? Done::kLater : Done::kNever;
      note_outcome(change, before, "it comes after what could not be done");
      continue;
    }
    const auto setting = std::ranges::find(models, change.name, &ModelSetting::name);
    switch (attempt(change, setting == models.end() ? nullptr : &*setting, stop)) {
      case Done::kYes:
        break;
      case Done::kLater:
        later.insert(change.name);
        if (!again || change.kind != Kind::kRemove) {
          again = change.kind == Kind::kRemove ? kRetryHere : kRetry;
        }
        break;
      case Done::kNever:
        given_up.insert(change.name);
        break;
    }
  }
  // What is there now is done with: whoever removes it by hand means it.
  for (const ModelSetting& model : models) {
    if (later.contains(model.name)) continue;
    if (!given_up.insert(model.name).second) continue;
    note(model.name, nullptr, false);
    if (model.declared && (model.warm || model.pin)) warm(model.name);
  }
  return again;
}

ModelReconciler::Done ModelReconciler::attempt(const ModelChange& change,
                                               const ModelSetting* setting,
                                               const std::stop_token& stop) {
  note_outcome(change, Done::kLater, "it has only begun");
  try {
    const bool done = carry_out(change, setting, stop);
    note_outcome(change, done ? Done::kYes : Done::kLater, done ? "" : "somebody reads it");
    return done ? Done::kYes : Done::kLater;
  } catch (const TransientError& error) {
    log_.warning("{}: {}; trying again", change.name, error.what());
    note(change.name, &error, true);
    note_outcome(change, Done::kLater, error.what());
    return Done::kLater;
  } catch (const Error& error) {
    // Pinned or leased by somebody: it goes when they let it.
    const bool goes_later = error.code() == Errc::kBusy && change.kind == Kind::kRemove;
    note_outcome(change, goes_later ? Done::kLater : Done::kNever, error.what());
    if (goes_later) return Done::kLater;
    log_.error("{} ({}): {}", change.name, setting != nullptr ? setting->origin : "no setting",
               error.what());
    note(change.name, &error, false);
    return Done::kNever;
  }
}

bool ModelReconciler::carry_out(const ModelChange& change, const ModelSetting* setting,
                                const std::stop_token& stop) {
  const std::string& name = change.name;
  const control::Job job{.stop = stop, .report = [&](const api::JobProgress& progress) {
                           note_outcome(change, Done::kLater, stage_text(progress));
                         }};
  const auto request = [&] {
    api::AddRequest wanted{.name = name, .source = change.source};
    if (setting != nullptr) {
      wanted.allow_missing = setting->allow_missing;
      wanted.expect = setting->expect;
    }
    return wanted;
  };
  switch (change.kind) {
    case Kind::kAdd:
      parts_.service.add(request(), job);
      log_.info("added {} from {}", name, snapshot::shown_source(change.source));
      if (setting == nullptr || !setting->declared) break;
      parts_.catalog.set_declared(name, true);
      break;
    case Kind::kAdopt:
      parts_.catalog.set_declared(name, true);
      break;
    case Kind::kResource:
      parts_.service.resource(request(), job);
      log_.info("{} comes from {} now", name, snapshot::shown_source(change.source));
      break;
    case Kind::kRemove:
      return remove(name);
    case Kind::kPin:
      (void)parts_.service.pin(name,
                               {.reason = std::string(kDeclaredPin), .owner = "", .until = ""});
      break;
    case Kind::kUnpin:
      (void)parts_.service.unpin(name);
      break;
    case Kind::kConfirm:
      (void)parts_.service.confirm(name);
      break;
  }
  return true;
}

bool ModelReconciler::remove(const std::string& name) {
  const std::optional<catalog::Model> model = parts_.catalog.find(name);
  if (!model) return true;
  if (parts_.is_read(*model)) {
    if (first_try()) log_.info("{} goes once nobody reads it any more", name);
    return false;
  }
  if (model->pin && model->pin->reason == kDeclaredPin) (void)parts_.service.unpin(name);
  (void)parts_.service.remove(name, control::DryRun::kNo);
  log_.info("removed {}, which the configuration does not have any more", name);
  return true;
}

/// Again at every start: the store may have been wiped.
void ModelReconciler::warm(const std::string& name) {
  try {
    if (parts_.catalog.find(name)) (void)parts_.service.warm(name);
  } catch (const Error& error) {
    log_.warning("{} is not fetched: {}", name, error.what());
  }
}

/// No error: it is there.
void ModelReconciler::note(const std::string& name, const Error* error, bool retrying) {
  state_.with([&](State& state) {
    const auto known = std::ranges::find(state.missing, name, &api::MissingModel::name);
    if (known == state.missing.end()) return;
    if (error == nullptr) {
      state.missing.erase(known);
    } else {
      *known = {name, {weightfs::name(error->code()), error->what()}, retrying};
    }
  });
}

std::vector<api::MissingModel> ModelReconciler::missing() const {
  std::vector<api::MissingModel> missing =
      state_.with([](const State& state) { return state.missing; });
  std::erase_if(missing, [&](const api::MissingModel& each) {
    return parts_.catalog.find(each.name).has_value();
  });
  return missing;
}

}  // namespace weightfs::cli
