// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/man_page.hpp"

#include "cli/setting_table.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace weightfs::cli {

namespace {

/// Text as roff takes it: '-' is a minus (or it could not be copied from the page), and a line must
/// not begin with a control character.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string option_list(const std::vector<OptionText>& options) {
  std::string out;
  for (const OptionText& option : options) {
    out += fmt::format(".TP\n\\fB{}\\fR", roff(option.names));
    if (!option.value.empty()) out += fmt::format(" \\fI{}\\fR", roff(option.value));
    out += fmt::format("\n{}\n", roff(option.text));
  }
  return out;
}

std::string paragraphs(const CommandPage& page) {
  std::string out;
  for (const std::string& paragraph : page.paragraphs) out += ".PP\n" + roff(paragraph) + "\n";
  return out;
}

std::string command_section(const CommandPage& page) {
  std::string out =
      fmt::format(".SS {} {}\n{}.\n", roff(page.name), roff(page.usage), roff(page.summary));
  out += paragraphs(page);
  out += option_list(page.arguments);
  out += option_list(page.options);
  return out;
}

std::string environment_section() {
  std::string out = ".SH ENVIRONMENT\n.TP\n\\fBWEIGHTFS_CONFIG\\fR\nThe configuration file.\n";
  out +=
      ".TP\n\\fBWEIGHTFS_MODELS\\fR\nModels to add at start: NAME=SOURCE, parted by white space.\n";
  for (const Setting& setting : setting_table()) {
    out += fmt::format(".TP\n\\fB{}\\fR\nThe setting {}{}.\n", environment_variable(setting),
                       roff(setting.name),
                       setting.kind == SettingKind::kBoolean ? ", true or false" : "");
  }
  out += ".TP\n\\fBHF_TOKEN\\fR\nThe token for the Hugging Face Hub.\n";
  out +=
      ".TP\n\\fBhttp_proxy\\fR, \\fBhttps_proxy\\fR, \\fBall_proxy\\fR, \\fBno_proxy\\fR\n"
      "Proxies to the servers of sources, as curl takes them; none is asked for loopback.\n";
  out +=
      ".TP\n\\fBHF_HOME\\fR\nIts directory: the token is in 'token' in there, where nothing else "
      "says "
      "where it is.\n";
  for (const Setting& setting : setting_table()) {
    if (setting.known_variable.empty()) continue;
    out += fmt::format(".TP\n\\fB{}\\fR\nThe setting {}, as the Hub's own client knows it.\n",
                       setting.known_variable, roff(setting.name));
  }
  return out;
}

}  // namespace

std::string man_page(std::span<const CommandPage> pages) {
  const CommandPage& program = pages.front();
  std::string out =
      ".\\\" SPDX-License-Identifier: Apache-2.0\n"
      ".\\\" Copyright the weightfs authors\n"
      ".\\\" Written by 'weightfs man' from the texts of --help; change those.\n"
      ".TH WEIGHTFS 1\n"
      ".SH NAME\n";
  out += fmt::format("weightfs \\- {}\n", roff(program.summary));
  out += ".SH SYNOPSIS\n\\fBweightfs\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR ...\n";
  out += ".SH DESCRIPTION\n" + paragraphs(program);
  out += ".SH OPTIONS\nEvery command takes these.\n" + option_list(program.common_options);
  out += ".SH COMMANDS\n";
  for (const CommandPage& page : pages.subspan(1)) out += command_section(page);
  out += environment_section();
  out += fmt::format(
      ".SH FILES\n.TP\n\\fB{}\\fR\nSettings, as JSON in which comments are allowed: an object "
      "whose keys "
      "are the names that \\fBweightfs config check\\fR prints, and \"models\": [{{\"name\", "
      "\"source\"}}].\n",
      kDefaultConfig);
  out +=
      ".TP\n\\fB/etc/weightfs/credentials.json\\fR\n"
      "Where the setting credentials says so: {\"credentials\": [{\"url\": URL, ...}]}, who to be "
      "for "
      "that URL and what is below it. \"token\"; \"username\" and \"password\"; \"header\" and "
      "\"value\"; \"client_certificate\" and \"client_key\"; \"ca_bundle\". A secret may be in a "
      "file or a variable instead: \"token_file\", \"token_env\". Over plain http only with "
      "\"allow_plain\": true. It is read again when it changes.\n";
  out += ".TP\n\\fB/run/weightfs/control.sock\\fR\nThe control API: HTTP and JSON.\n";
  return out;
}

}  // namespace weightfs::cli
