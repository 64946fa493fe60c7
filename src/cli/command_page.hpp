// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace weightfs::cli {

/// An option or argument as a person reads it.
struct OptionText {
  std::string names;  ///< "--store", "-h, --help", "NAME"
  std::string value;  ///< "PATH"; empty for a switch
  std::string text;
};

/// What is to be said of one command: the one source of its help and of the manual. A value.
struct CommandPage {
  std::string name;   ///< "weightfs add"
  std::string usage;  ///< "NAME SOURCE [OPTIONS]"
  std::string summary;
  std::vector<std::string> paragraphs;
  std::vector<OptionText> arguments;
  std::vector<OptionText> options;
  std::vector<OptionText> common_options;
  std::vector<OptionText> commands;
};

/// Options of this group are listed apart.
inline constexpr std::string_view kCommonGroup = "Common options";

/// What the parser knows. The summary is the first line of the app's description, the paragraphs
/// follow.
[[nodiscard]] CommandPage describe(const CLI::App& app);

/// For a terminal of so many columns (at most 100 are used). Pure.
[[nodiscard]] std::string help_text(const CommandPage& page, unsigned columns);

}  // namespace weightfs::cli
