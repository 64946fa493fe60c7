// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/hub_answer.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "source/hf/rate_gate.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weightfs::source {

namespace {

constexpr std::size_t kLongestMessage = 300;

/// What the server says of its own accord: foreign bytes, so cut and made printable.
std::string server_says(const net::ResponseHead& head) {
  const std::string message = head.header("x-error-message").value_or("");
  if (message.empty()) return "";
  return fmt::format(" (it says: {})", snapshot::printable(message.substr(0, kLongestMessage)));
}

std::string advice(const HubQuestion& question, std::string_view of_token) {
  return question.token_origin.empty()
             ? "no token was sent (HF_TOKEN or a token file gives one)"
             : fmt::format("the token of {} {}", question.token_origin, of_token);
}

[[noreturn]] void throw_denied(const net::ResponseHead& head, const HubQuestion& question) {
  const std::string code = head.header("x-error-code").value_or("");
  const std::string message = head.header("x-error-message").value_or("");
  const std::string says = server_says(head);
  if (code == "GatedRepo") {
    throw Error(Errc::kPermission,
                fmt::format("{} is gated: its owner lets in accounts that accepted the terms; {}{}",
                            question.repository, advice(question, "is of one that did not"), says));
  }
  // Of those who send none the same is said for what is not there.
  if (head.status == 401 && !question.token_origin.empty()) {
    throw Error(Errc::kPermission,
                fmt::format("{}: the Hub refuses the token of {} as not valid (any more), even for "
                            "what everybody may read: replace or remove it{}",
                            question.repository, question.token_origin, says));
  }
  if (message.find("disabled") != std::string::npos) {
    throw Error(Errc::kPermission,
                fmt::format("{} is disabled by the Hub{}", question.repository, says));
  }
  throw Error(head.status == 403 ? Errc::kPermission : Errc::kNotFound,
              fmt::format("{} does not exist, or it is private: {}{}", question.repository,
                          advice(question, "gives no access to it"), says));
}

[[noreturn]] void throw_missing(const net::ResponseHead& head, const HubQuestion& question) {
  const std::string code = head.header("x-error-code").value_or("");
  if (code == "RevisionNotFound") {
    throw Error(Errc::kNotFound,
                fmt::format("{} has no revision {}", question.repository, question.revision));
  }
  if (code == "EntryNotFound") {
    throw Error(Errc::kNotFound,
                fmt::format("{} has no {} at {}", question.repository,
                            snapshot::printable(question.path), question.revision));
  }
  if (code.empty() || code == "RepoNotFound") throw_denied(head, question);
  throw Error(Errc::kNotFound, fmt::format("{} was not found: {}{}", question.repository,
                                           snapshot::printable(code), server_says(head)));
}

}  // namespace

void throw_answer(const net::ResponseHead& head, const HubQuestion& question) {
  switch (head.status) {
    case 401:
    case 403:
      throw_denied(head, question);
    case 404:
      throw_missing(head, question);
    default:
      break;
  }
  const std::string text =
      fmt::format("{}: the Hub answered {}{}", question.repository, head.status, server_says(head));
  if (head.status == 408 || head.status == 425 || head.status == 429 || head.status >= 500) {
    throw TransientError(Errc::kUnavailable, text, asked_wait(head));
  }
  throw Error(Errc::kInvalid, text + ", which is no answer to this request");
}

}  // namespace weightfs::source
