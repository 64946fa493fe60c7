// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/synchronized.hpp"
#include "catalog/catalog.hpp"
#include "cli/model_changes.hpp"
#include "cli/settings.hpp"
#include "control/operations.hpp"
#include "weightfs/values.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace weightfs::cli {

/// Makes the catalog what the settings say of it, at start and whenever they are read again. What
/// is out of reach is tried again until it is done or the settings are others; what cannot work is
/// left. Both are told to the log, and to whoever asks for missing(). A model is not taken away
/// while somebody reads it, but later.
///
/// Thread-safe. Has one thread ("models"). What is given must outlive it.
class ModelReconciler {
 public:
  struct Parts {
    control::Operations& service;
    catalog::Catalog& catalog;
    /// Whether somebody has a file of the model open.
    std::function<bool(const catalog::Model&)> is_read;
  };
  ModelReconciler(Parts parts, std::vector<ModelSetting> models, Log log);
  ModelReconciler(const ModelReconciler&) = delete;
  ModelReconciler& operator=(const ModelReconciler&) = delete;

  /// These, from now on.
  void declare(std::vector<ModelSetting> models);
  /// What became of one change that the latest settings want, when it was first tried. One that is
  /// not among them has not had its turn.
  enum class Done { kYes, kLater, kNever };
  struct Outcome {
    ModelChange change;
    Done done = Done::kLater;
    std::string reason = {};  ///< why it is not done
  };
  [[nodiscard]] std::vector<Outcome> outcomes() const;
  /// Until everything that the latest settings want was tried once, or for as long as `patience`.
  void wait_until_tried(std::chrono::milliseconds patience) const;
  /// Those that are not in the catalog, in the order of the settings. One that was added by
  /// somebody else, or was added and then removed, is none of them.
  [[nodiscard]] std::vector<api::MissingModel> missing() const;

 private:
  struct State {
    std::vector<ModelSetting> models;
    std::uint64_t declared = 1;  ///< how often
    std::uint64_t tried = 0;     ///< of those
    std::vector<api::MissingModel> missing;
    std::vector<Outcome> outcomes;
  };

  void run(const std::stop_token& stop);
  /// Does what differs, but for the models in `given_up`; returns after what time some of it is to
  /// be tried again, if any.
  [[nodiscard]] std::optional<std::chrono::seconds> reconcile(
      const std::vector<ModelSetting>& models, std::set<std::string>& given_up,
      const std::stop_token& stop);
  [[nodiscard]] Done attempt(const ModelChange& change, const ModelSetting* setting,
                             const std::stop_token& stop);
  /// False where it has to wait.
  [[nodiscard]] bool carry_out(const ModelChange& change, const ModelSetting* setting,
                               const std::stop_token& stop);
  [[nodiscard]] bool remove(const std::string& name);
  [[nodiscard]] bool first_try() const;
  /// Of the first attempt of the thread's settings, unless there are newer ones.
  void note_outcome(const ModelChange& change, Done done, const std::string& reason = {});
  void warm(const std::string& name);
  void note(const std::string& name, const Error* error, bool retrying);

  const Parts parts_;
  const Log log_;
  mutable Synchronized<State> state_;
  mutable std::condition_variable_any changed_;
  std::uint64_t at_ = 0;  ///< of the thread: which of State::declared it is at
  std::jthread thread_;
};

}  // namespace weightfs::cli
