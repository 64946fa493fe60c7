// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/model_adder.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"
#include "snapshot/reference.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::cli {

namespace {

constexpr std::chrono::seconds kRetry{10};

std::vector<api::MissingModel> all_of(const std::vector<ModelSetting>& models) {
  std::vector<api::MissingModel> all;
  for (const ModelSetting& model : models) {
    all.push_back({.name = model.name,
                   .error = {name(Errc::kNotReady), "its source has not answered yet"},
                   .retrying = true});
  }
  return all;
}

}  // namespace

ModelAdder::ModelAdder(control::Operations& service, const catalog::Catalog& catalog,
                       std::vector<ModelSetting> models, Log log)
    : service_(service),
      catalog_(catalog),
      models_(std::move(models)),
      log_(std::move(log)),
      missing_(all_of(models_)),
      thread_(start_thread("models", [this](const std::stop_token& stop) { run(stop); })) {
}

void ModelAdder::run(const std::stop_token& stop) {
  std::vector<ModelSetting> missing = add(models_, stop);
  each_was_tried_.set_value();
  while (!missing.empty() && pause(stop, kRetry)) missing = add(missing, stop);
}

std::vector<ModelSetting> ModelAdder::add(const std::vector<ModelSetting>& models,
                                          const std::stop_token& stop) {
  std::vector<ModelSetting> later;
  for (const ModelSetting& model : models) {
    if (stop.stop_requested()) break;
    try {
      if (catalog_.find(model.name)) {
        is_there(model.name);
        continue;
      }
      service_.add({.name = model.name, .source = model.source}, {.stop = stop});
      is_there(model.name);
      log_.info("added {} from {}", model.name, snapshot::shown_source(model.source));
    } catch (const TransientError& error) {
      log_.warning("{}: {}; trying again", model.name, error.what());
      is_missing({model.name, {name(error.code()), error.what()}, true});
      later.push_back(model);
    } catch (const Error& error) {
      is_missing({model.name, {name(error.code()), error.what()}, false});
      log_.error("{} ({}): {}", model.name, model.origin, error.what());
    }
  }
  return later;
}

void ModelAdder::is_there(const std::string& name) {
  missing_.with([&](auto& missing) {
    std::erase_if(missing, [&](const api::MissingModel& each) { return each.name == name; });
  });
}

void ModelAdder::is_missing(const api::MissingModel& model) {
  missing_.with([&](auto& missing) {
    const auto known = std::ranges::find(missing, model.name, &api::MissingModel::name);
    if (known != missing.end()) *known = model;
  });
}

std::vector<api::MissingModel> ModelAdder::missing() const {
  std::vector<api::MissingModel> missing = missing_.with([](const auto& all) { return all; });
  std::erase_if(
      missing, [&](const api::MissingModel& each) { return catalog_.find(each.name).has_value(); });
  return missing;
}

}  // namespace weightfs::cli
