// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "cli/command_page.hpp"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weightfs::cli {

/// What a command takes, as its `declare` says it: the face of the parser that commands see. CLI11
/// has all its code in its header, which costs ten seconds wherever it is included; besides this
/// class only CommandLine and CommandPage do.
///
/// The values that are bound must outlive the parsing. Not thread-safe.
class Options {
 public:
  /// `app` is the command to the parser, and must outlive this.
  explicit Options(CLI::App& app) : app_(app) {}

  void argument(const std::string& name, const std::string& text, std::string& value);
  void optional_argument(const std::string& name, const std::string& text, std::string& value);

  /// At least one.
  void arguments(const std::string& name, const std::string& text,
                 std::vector<std::string>& values);
  void optional_arguments(const std::string& name, const std::string& text,
                          std::vector<std::string>& values);

  void flag(const std::string& name, const std::string& text, bool& value);
  void flag(const std::string& name, const std::string& text, std::function<void()> given);

  void option(const OptionText& option, std::string& value);
  void option(const OptionText& option, std::function<void(const std::string&)> given);
  void required_option(const OptionText& option, std::string& value);
  /// May be given again for more.
  void repeated_option(const OptionText& option, std::vector<std::string>& values);
  /// A whole number from `least` to `most`; anything else is wrong usage.
  void number(const OptionText& option, unsigned& value, unsigned least, unsigned most);
  void number(const OptionText& option, int& value, int least, int most);
  /// A file descriptor that was inherited.
  void descriptor(const OptionText& option, int& value);

 private:
  CLI::App& app_;
};

}  // namespace weightfs::cli
