// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/model_adder.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"
#include "snapshot/reference.hpp"

#include <utility>

namespace weightfs::cli {

namespace {

constexpr std::chrono::seconds kRetry{10};

}  // namespace

ModelAdder::ModelAdder(control::Operations& service, const catalog::Catalog& catalog,
                       std::vector<ModelSetting> models, Log log)
    : service_(service),
      catalog_(catalog),
      models_(std::move(models)),
      log_(std::move(log)),
      thread_(start_thread("models", [this](const std::stop_token& stop) { run(stop); })) {
}

void ModelAdder::run(const std::stop_token& stop) {
  std::vector<ModelSetting> missing = add(models_, stop);
  each_was_tried_.set_value();
  while (!missing.empty() && pause(stop, kRetry)) missing = add(missing, stop);
}

std::vector<ModelSetting> ModelAdder::add(const std::vector<ModelSetting>& models,
                                          const std::stop_token& stop) const {
  std::vector<ModelSetting> later;
  for (const ModelSetting& model : models) {
    if (stop.stop_requested()) break;
    try {
      if (catalog_.find(model.name)) continue;
      service_.add({.name = model.name, .source = model.source}, {.stop = stop});
      log_.info("added {} from {}", model.name, snapshot::shown_source(model.source));
    } catch (const TransientError& error) {
      log_.warning("{}: {}; trying again", model.name, error.what());
      later.push_back(model);
    } catch (const Error& error) {
      log_.error("{} ({}): {}", model.name, model.origin, error.what());
    }
  }
  return later;
}

}  // namespace weightfs::cli
