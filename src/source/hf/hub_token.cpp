// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/hub_token.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <utility>

namespace weightfs::source {

namespace {

constexpr std::uint64_t kLongest = 8 << 10;

std::string trimmed(std::string text) {
  constexpr const char* kBlank = " \t\r\n";
  text.erase(0, text.find_first_not_of(kBlank));
  text.erase(text.find_last_not_of(kBlank) + 1);
  return text;
}

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
  if (!given_.empty() || file_.empty()) return checked(given_, origin());
  struct stat now = {};
  if (::stat(file_.c_str(), &now) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw_errno(errno, "the Hub's token in " + file_.string());
  }
  const std::int64_t mtime = now.st_mtim.tv_sec * 1'000'000'000 + now.st_mtim.tv_nsec;
  const auto same = [&](const Seen& seen) {
    return seen.mtime_ns == mtime && seen.inode == now.st_ino && seen.size == now.st_size;
  };
  const auto known = seen_.with(
      [&](const Seen& seen) { return same(seen) ? std::optional(seen.token) : std::nullopt; });
  if (known) return checked(*known, origin());
  std::string token = trimmed(read_file(file_, kLongest));
  seen_.with([&](Seen& seen) { seen = {mtime, now.st_ino, now.st_size, token}; });
  return checked(std::move(token), origin());
}

std::string HubToken::origin() const {
  return !given_.empty() || file_.empty() ? "HF_TOKEN" : file_.string();
}

}  // namespace weightfs::source
