// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/command_page.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>

namespace weightfs::cli {

namespace {

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + separator.size(), text.size()));
  }
  return parts;
}

OptionText text_of(const CLI::Option& option) {
  OptionText text;
  if (option.get_positional()) {
    text.names = option.get_name(true, false);
  } else {
    for (const std::string& name : option.get_snames()) text.names += "-" + name + ", ";
    for (const std::string& name : option.get_lnames()) text.names += "--" + name + ", ";
    text.names.resize(text.names.size() - 2);
    if (option.get_items_expected_max() > 0) text.value = option.get_type_name();
  }
  text.text = option.get_description();
  return text;
}

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

/// Lines of at most `width` columns, each after `indent` spaces; the first begins where the cursor
/// is.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t used = 0;
  for (const std::string& word : split(text, " ")) {
    if (used > 0 && used + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      used = 0;
    }
    if (used > 0) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
  }
  return out;
}

std::string section(std::string_view title, const std::vector<OptionText>& options,
                    std::size_t width) {
  if (options.empty()) return {};
  constexpr std::size_t kIndent = 2;
  constexpr std::size_t kWidest = 30;
  std::size_t column = 0;
  const auto left_of = [](const OptionText& option) {
    return option.value.empty() ? option.names : option.names + " " + option.value;
  };
  for (const OptionText& option : options) column = std::max(column, left_of(option).size());
  column = kIndent + std::min(column, kWidest) + 2;

  std::string out = fmt::format("\n{}:\n", title);
  for (const OptionText& option : options) {
    std::string left = std::string(kIndent, ' ') + left_of(option);
    if (left.size() + 2 > column) {
      left += "\n" + std::string(column, ' ');
    } else {
      left.resize(column, ' ');
    }
    out += left + wrapped(option.text, column, width - column) + "\n";
  }
  return out;
}

}  // namespace

CommandPage describe(const CLI::App& app) {
  CommandPage page;
  page.name = full_name(app);
  page.paragraphs = split(app.get_description(), "\n\n");
  if (!page.paragraphs.empty()) {
    page.summary = page.paragraphs.front();
    page.paragraphs.erase(page.paragraphs.begin());
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    auto& list = option->get_positional()              ? page.arguments
                 : option->get_group() == kCommonGroup ? page.common_options
                                                       : page.options;
    list.push_back(text_of(*option));
    if (option->get_positional()) {
      std::string names = list.back().names;
      if (option->get_items_expected_max() > 1) names += "...";
      page.usage +=
          option->get_required() ? fmt::format("{} ", names) : fmt::format("[{}] ", names);
    }
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;
    page.commands.push_back(
        {command->get_name(), "", split(command->get_description(), "\n\n").front()});
  }
  if (!page.commands.empty()) page.usage += "COMMAND ";
  page.usage += "[OPTIONS]";
  return page;
}

std::string help_text(const CommandPage& page, unsigned columns) {
  const std::size_t width = std::clamp(columns, 60U, 100U);
  std::string out = fmt::format("{}\n\nUsage: {} {}\n", page.summary, page.name, page.usage);
  for (const std::string& paragraph : page.paragraphs) {
    out += "\n" + wrapped(paragraph, 0, width) + "\n";
  }
  out += section("Arguments", page.arguments, width);
  out += section("Commands", page.commands, width);
  out += section("Options", page.options, width);
  out += section(kCommonGroup, page.common_options, width);
  return out;
}

}  // namespace weightfs::cli
