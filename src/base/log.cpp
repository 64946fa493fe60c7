// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace weightfs {

namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

class Log::Sink {
 public:
  explicit Sink(LogLevel level)
      : logger_("weightfs", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_level(to_spdlog(level));
    logger_.set_pattern("%Y-%m-%dT%H:%M:%S.%e %P %l %v");
    logger_.flush_on(spdlog::level::debug);
  }

  void write(LogLevel level, const std::string& component, std::string_view text) const {
    logger_.log(to_spdlog(level), "{}: {}", component, text);
  }

 private:
  mutable spdlog::logger logger_;  // spdlog's own sinks lock
};

Log::Log(std::shared_ptr<const Sink> sink, std::string component)
    : sink_(std::move(sink)), component_(std::move(component)) {
}

Log Log::to_stderr(LogLevel level) {
  return {std::make_shared<const Sink>(level), "weightfs"};
}

Log Log::silent() {
  return {nullptr, ""};
}

Log Log::named(std::string component) const {
  return {sink_, std::move(component)};
}

void Log::write(LogLevel level, std::string_view text) const {
  if (sink_) sink_->write(level, component_, text);
}

}  // namespace weightfs
