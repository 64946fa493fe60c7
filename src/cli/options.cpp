// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/options.hpp"

#include <CLI/CLI.hpp>

#include <utility>

namespace weightfs::cli {

void Options::argument(const std::string& name, const std::string& text, std::string& value) {
  app_.add_option(name, value, text)->required();
}

void Options::optional_argument(const std::string& name, const std::string& text,
                                std::string& value) {
  app_.add_option(name, value, text);
}

void Options::arguments(const std::string& name, const std::string& text,
                        std::vector<std::string>& values) {
  app_.add_option(name, values, text)->required();
}

void Options::optional_arguments(const std::string& name, const std::string& text,
                                 std::vector<std::string>& values) {
  app_.add_option(name, values, text);
}

void Options::flag(const std::string& name, const std::string& text, bool& value) {
  app_.add_flag(name, value, text);
}

void Options::flag(const std::string& name, const std::string& text, std::function<void()> given) {
  app_.add_flag_callback(name, std::move(given), text);
}

void Options::option(const OptionText& option, std::string& value) {
  app_.add_option(option.names, value, option.text)->type_name(option.value);
}

void Options::option(const OptionText& option, std::function<void(const std::string&)> given) {
  app_.add_option_function<std::string>(option.names, given, option.text)->type_name(option.value);
}

void Options::required_option(const OptionText& option, std::string& value) {
  app_.add_option(option.names, value, option.text)->type_name(option.value)->required();
}

void Options::repeated_option(const OptionText& option, std::vector<std::string>& values) {
  app_.add_option(option.names, values, option.text)
      ->type_name(option.value)
      ->allow_extra_args(false);
}

void Options::number(const OptionText& option, unsigned& value, unsigned least, unsigned most) {
  app_.add_option(option.names, value, option.text)
      ->type_name(option.value)
      ->check(CLI::Range(least, most));
}

void Options::number(const OptionText& option, int& value, int least, int most) {
  app_.add_option(option.names, value, option.text)
      ->type_name(option.value)
      ->check(CLI::Range(least, most));
}

void Options::descriptor(const OptionText& option, int& value) {
  app_.add_option(option.names, value, option.text)->type_name(option.value);
}

}  // namespace weightfs::cli
