// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/hub_token.hpp"

#include "base/error.hpp"
#include "source/error_context.hpp"

#include <algorithm>
#include <utility>

namespace weightfs::source {

namespace {

std::optional<std::string> checked(std::string token, const std::string& origin) {
  if (token.empty()) return std::nullopt;
  const auto prints = [](char c) { return c > ' ' && c <= '~'; };
  if (!std::ranges::all_of(token, prints)) {
    throw Error(Errc::kInvalid, "the Hub's token of " + origin +
                                    " has a blank or a control character in it: it is not sent");
  }
  return token;
}

}  // namespace

HubToken::HubToken(std::string token, std::filesystem::path file)
    : given_(trimmed(std::move(token))), file_(std::move(file)) {
}

std::optional<std::string> HubToken::current() {
  if (!given_.empty() || file_.path().empty()) return checked(given_, origin());
  SecretFile::ContentPtr content;
  try {
    content = file_.content();
  } catch (...) {
    rethrow_with("the Hub's token");
  }
  return content ? checked(trimmed(content->text), origin()) : std::nullopt;
}

std::string HubToken::origin() const {
  return !given_.empty() || file_.path().empty() ? "HF_TOKEN" : file_.path().string();
}

}  // namespace weightfs::source
