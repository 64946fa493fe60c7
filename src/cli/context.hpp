// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/settings.hpp"
#include "cli/streams.hpp"
#include "weightfs/client.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace weightfs::cli {

/// Options that every command takes; empty where they were not given.
struct CommonOptions {
  std::string socket;
  std::string config;
  bool json = false;
};

/// What a running command is given. Confined to the command's thread; refers to what weightfs_main
/// was given.
class Context {
 public:
  Context(Streams& streams, const Environment& environment, const CommonOptions& options)
      : streams_(streams), environment_(environment), options_(options) {}

  [[nodiscard]] Streams& streams() const noexcept { return streams_; }
  [[nodiscard]] const Environment& environment() const noexcept { return environment_; }
  [[nodiscard]] const std::string& config() const noexcept { return options_.config; }
  [[nodiscard]] bool json() const noexcept { return options_.json; }

  /// Environment, configuration file and --socket; a command adds the flags it has of its own.
  [[nodiscard]] SettingSources setting_sources() const;
  /// The daemon's socket: --socket, environment, configuration, default. UsageError.
  [[nodiscard]] std::string socket() const;
  /// `deadline` as in api::ClientOptions.
  [[nodiscard]] api::Client client(
      std::optional<std::chrono::steady_clock::time_point> deadline = {}) const {
    return api::Client({.socket = socket(), .deadline = deadline});
  }

  void print_json(const nlohmann::ordered_json& json) const;

 private:
  Streams& streams_;
  const Environment& environment_;
  const CommonOptions& options_;
};

}  // namespace weightfs::cli
