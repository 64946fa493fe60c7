// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/log.hpp"
#include "catalog/catalog.hpp"
#include "cli/settings.hpp"
#include "control/operations.hpp"

#include <chrono>
#include <future>
#include <stop_token>
#include <thread>
#include <vector>

namespace weightfs::cli {

/// Adds the models that the settings name and the catalog does not have yet. One whose source is
/// out of reach is tried again until the end; one that cannot work is told to the log and left.
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

 private:
  void run(const std::stop_token& stop);
  /// Those of `models` that are to be tried again.
  [[nodiscard]] std::vector<ModelSetting> add(const std::vector<ModelSetting>& models,
                                              const std::stop_token& stop) const;

  control::Operations& service_;
  const catalog::Catalog& catalog_;
  const std::vector<ModelSetting> models_;
  const Log log_;
  std::promise<void> each_was_tried_;
  const std::future<void> tried_ = each_was_tried_.get_future();
  std::jthread thread_;
};

}  // namespace weightfs::cli
