// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

namespace weightfs {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Where the process reports what a person may want to read later: one line per event to standard
/// error, with time, level and the component. A value that is handed down; no global logger.
/// Thread-safe. Copies share the sink.
class Log {
 public:
  /// Writes to standard error from `level` on.
  static Log to_stderr(LogLevel level);
  /// Drops everything; for tests and commands that print their own errors.
  static Log silent();

  /// The same sink under another component name.
  [[nodiscard]] Log named(std::string component) const;

  template <class... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kDebug, fmt::vformat(format, fmt::make_format_args(args...)));
  }
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kInfo, fmt::vformat(format, fmt::make_format_args(args...)));
  }
  template <class... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kWarning, fmt::vformat(format, fmt::make_format_args(args...)));
  }
  template <class... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    write(LogLevel::kError, fmt::vformat(format, fmt::make_format_args(args...)));
  }

 private:
  class Sink;
  Log(std::shared_ptr<const Sink> sink, std::string component);
  void write(LogLevel level, std::string_view text) const;

  std::shared_ptr<const Sink> sink_;
  std::string component_;
};

}  // namespace weightfs
