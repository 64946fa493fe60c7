// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "catalog/catalog.hpp"
#include "cli/settings.hpp"
#include "control/operations.hpp"
#include "weightfs/values.hpp"

#include <chrono>
#include <future>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace weightfs::cli {

/// Adds the models that the settings name and the catalog does not have yet. One whose source is
/// out of reach is tried again until the end; one that cannot work is left. Both are told to the
/// log, and to whoever asks for missing().
///
/// Thread-safe. Has one thread ("models"). `service` and `catalog` must outlive it.
class ModelAdder {
 public:
  ModelAdder(control::Operations& service, const catalog::Catalog& catalog,
             std::vector<ModelSetting> models, Log log);
  ModelAdder(const ModelAdder&) = delete;
  ModelAdder& operator=(const ModelAdder&) = delete;

  /// Until each model was tried once, or for as long as `patience`.
  void wait_until_tried(std::chrono::milliseconds patience) const { tried_.wait_for(patience); }
  /// Those that are not in the catalog, in the order of the settings. One that was added by
  /// somebody else, or was added and then removed, is none of them.
  [[nodiscard]] std::vector<api::MissingModel> missing() const;

 private:
  void run(const std::stop_token& stop);
  /// Those of `models` that are to be tried again.
  [[nodiscard]] std::vector<ModelSetting> add(const std::vector<ModelSetting>& models,
                                              const std::stop_token& stop);
  void is_there(const std::string& name);
  void is_missing(const api::MissingModel& model);

  control::Operations& service_;
  const catalog::Catalog& catalog_;
  const std::vector<ModelSetting> models_;
  const Log log_;
  mutable Synchronized<std::vector<api::MissingModel>> missing_;
  std::promise<void> each_was_tried_;
  const std::future<void> tried_ = each_was_tried_.get_future();
  std::jthread thread_;
};

}  // namespace weightfs::cli
