// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/setting_table.hpp"

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "snapshot/hub_reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace weightfs::cli {

namespace {

/// Below, a single block of a file would take seconds, and somebody has mistaken the unit.
constexpr std::uint64_t kSlowest = 64 << 10;

/// The words of an enum, in the order in which they are offered.
template <class E, std::size_t N>
using Words = std::array<std::pair<std::string_view, E>, N>;

constexpr Words<Admission, 3> kAdmissions{{{"always", Admission::kAlways},
                                           {"second-reference", Admission::kSecondReference},
                                           {"never", Admission::kNever}}};
constexpr Words<fetch::Verify, 2> kVerifications{
    {{"stream", fetch::Verify::kStream}, {"strict", fetch::Verify::kStrict}}};
constexpr Words<vfs::CheckPolicy, 3> kOpenChecks{{{"boot", vfs::CheckPolicy::kBoot},
                                                  {"always", vfs::CheckPolicy::kAlways},
                                                  {"never", vfs::CheckPolicy::kNever}}};
constexpr Words<LogLevel, 4> kLogLevels{{{"debug", LogLevel::kDebug},
                                         {"info", LogLevel::kInfo},
                                         {"warning", LogLevel::kWarning},
                                         {"error", LogLevel::kError}}};
constexpr Words<bool, 2> kBooleans{{{"true", true}, {"false", false}}};

template <class E, std::size_t N>
E word(const Words<E, N>& words, const std::string& text) {
  std::string offered;
  for (const auto& [name, value] : words) {
    if (name == text) return value;
    offered += fmt::format("{}{}", offered.empty() ? "" : ", ", name);
  }
  throw Error(Errc::kInvalid, fmt::format("'{}' is none of {}", text, offered));
}

template <class E, std::size_t N>
std::string word_of(const Words<E, N>& words, E value) {
  for (const auto& [name, candidate] : words) {
    if (candidate == value) return std::string(name);
  }
  return "";
}

unsigned number(const std::string& text, unsigned least, unsigned most) {
  unsigned value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < least || value > most) {
    throw Error(Errc::kInvalid,
                fmt::format("'{}' is not a whole number from {} to {}", text, least, most));
  }
  return value;
}

std::uint64_t size(const std::string& text, std::uint64_t least, std::uint64_t most) {
  const std::uint64_t bytes = parse_size(text);
  if (bytes < least || bytes > most) {
    throw Error(Errc::kInvalid, fmt::format("'{}' is not between {} and {}", text,
                                            exact_size(least), exact_size(most)));
  }
  return bytes;
}

std::uint64_t rate(const std::string& text) {
  const std::uint64_t bytes = parse_rate(text);
  if (bytes > 0 && bytes < kSlowest) {
    throw Error(Errc::kInvalid, fmt::format("'{}' is less than {}; unlimited is no limit", text,
                                            exact_rate(kSlowest)));
  }
  return bytes;
}

std::chrono::milliseconds duration(const std::string& text) {
  using namespace std::chrono_literals;
  const auto time = parse_duration(text);
  if (time < 100ms || time > 24h) {
    throw Error(Errc::kInvalid, fmt::format("'{}' is not between 100ms and 24h", text));
  }
  return time;
}

/// Of people's plans rather than of packets: nothing, or up to a year.
std::chrono::milliseconds span(const std::string& text) {
  using namespace std::chrono_literals;
  const auto time = parse_duration(text);
  if (time > 365 * 24h) {
    throw Error(Errc::kInvalid, fmt::format("'{}' is more than a year", text));
  }
  return time;
}

/// Printable, as it stands in events and messages.
std::string identifier(const std::string& text) {
  constexpr std::size_t kLongest = 256;
  const auto prints = [](char c) { return c > ' ' && c <= '~'; };
  if (text.empty() || text.size() > kLongest || !std::ranges::all_of(text, prints)) {
    throw Error(Errc::kInvalid, fmt::format("'{}' is not an id: 1 to {} printable ASCII characters "
                                            "without spaces",
                                            text, kLongest));
  }
  return text;
}

std::filesystem::path absolute_path(const std::string& text) {
  const std::filesystem::path path(text);
  if (!path.is_absolute()) {
    throw Error(Errc::kInvalid, fmt::format("'{}' is not an absolute path", text));
  }
  // "/a/" names the same directory as "/a", and "<store>-state" must stand beside it.
  auto normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

std::vector<std::filesystem::path> absolute_paths(const std::string& text) {
  std::vector<std::filesystem::path> paths;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    paths.push_back(absolute_path(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return paths;
}

std::string text_of(const std::vector<std::filesystem::path>& paths) {
  std::string text;
  for (const std::filesystem::path& path : paths) {
    if (!text.empty()) text += ':';
    text += path.string();
  }
  return text;
}

constexpr auto kText = SettingKind::kText;
constexpr auto kPaths = SettingKind::kPaths;
constexpr auto kNumber = SettingKind::kNumber;
constexpr auto kBoolean = SettingKind::kBoolean;
constexpr std::uint64_t kKiB = 1ULL << 10;
constexpr std::uint64_t kGiB = 1ULL << 30;

// clang-format off
constexpr std::array kTable{
    Setting{"store", kPaths, "PATH[:PATH]", "/var/lib/weightfs/store",
            "Directory of the content-addressed store, on a local filesystem; expendable. Several, one "
            "for each disk, have a ':' between them (in the file: or are a list).",
            [](Settings& s, const std::string& t) { s.stores = absolute_paths(t); },
            [](const Settings& s) { return text_of(s.stores); }},
    Setting{"state", kText, "PATH", "",
            "Directory of names, pins and snapshots, small and durable. Default: the path of the (first) "
            "store followed by '-state'.",
            [](Settings& s, const std::string& t) { if (!t.empty()) s.state = absolute_path(t); },
            [](const Settings& s) { return s.state.string(); }},
    Setting{"socket", kText, "PATH", "/run/weightfs/control.sock",
            "Unix socket of the daemon's control API.",
            [](Settings& s, const std::string& t) { s.socket = absolute_path(t); },
            [](const Settings& s) { return s.socket.string(); }},
    Setting{"user", kText, "NAME", "",
            "User that the daemon runs as. Default: weightfs where there is such a user, else nobody.",
            [](Settings& s, const std::string& t) { s.user = t; },
            [](const Settings& s) { return s.user; }},
    Setting{"mode", kText, "MODE", "prod",
            "prod: the cache. off: reads stream from their sources, past the store. shadow: as off, "
            "while 'weightfs status' tells what the cache would have kept, evicted and saved. "
            "'weightfs mode' changes it until the next mount.",
            [](Settings& s, const std::string& t) { s.mode = word(cache::kModeWords, t); },
            [](const Settings& s) { return word_of(cache::kModeWords, s.mode); }},
    Setting{"admission", kText, "POLICY", "second-reference",
            "What is kept of what was fetched: what a second consumer asks for as well "
            "(second-reference; until then it is on probation, in a part of the store), always, or "
            "never.",
            [](Settings& s, const std::string& t) { s.admission = word(kAdmissions, t); },
            [](const Settings& s) { return word_of(kAdmissions, s.admission); }},
    Setting{"capacity", kText, "SIZE|PERCENT", "90%",
            "How much the store may take, files that are being fetched included: a size for all of it, or a part "
            "of its filesystem, of each.",
            [](Settings& s, const std::string& t) { s.limits.capacity = parse_share(t); },
            [](const Settings& s) { return exact_share(s.limits.capacity); }},
    Setting{"min_free", kText, "SIZE|PERCENT", "5%",
            "How much of its filesystem, of each, the store leaves free, whoever uses the rest.",
            [](Settings& s, const std::string& t) { s.limits.min_free = parse_share(t); },
            [](const Settings& s) { return exact_share(s.limits.min_free); }},
    Setting{"probation", kText, "SIZE|PERCENT", "20%",
            "How much of the capacity what was asked for once may take.",
            [](Settings& s, const std::string& t) { s.limits.probation = parse_share(t); },
            [](const Settings& s) { return exact_share(s.limits.probation); }},
    Setting{"rollback_window", kText, "DURATION", "24h",
            "For how long after an update the last confirmed revision is not evicted.",
            [](Settings& s, const std::string& t) { s.rollback_window = span(t); },
            [](const Settings& s) { return exact_duration(s.rollback_window); }},
    Setting{"confirm_after", kText, "DURATION", "0s",
            "A revision that a model has shown for so long is confirmed by itself. 0s: never.",
            [](Settings& s, const std::string& t) { s.confirm_after = span(t); },
            [](const Settings& s) { return exact_duration(s.confirm_after); }},
    Setting{"deployment", kText, "ID", "unknown",
            "Who a reader is taken for of whom neither cgroup nor session can be seen, as from within "
            "another pid namespace.",
            [](Settings& s, const std::string& t) { s.deployment = identifier(t); },
            [](const Settings& s) { return s.deployment; }},
    Setting{"require_digest", kBoolean, "", "false",
            "Refuse to add or update a model unless its revision or its snapshot is named "
            "(SOURCE@REVISION, --expect): what a source alone has may change.",
            [](Settings& s, const std::string& t) { s.require_digest = word(kBooleans, t); },
            [](const Settings& s) { return word_of(kBooleans, s.require_digest); }},
    Setting{"flip_wait", kText, "DURATION", "60s",
            "For how long an update waits before its name shows the new revision while somebody "
            "loads the old one through it. 0s: not at all.",
            [](Settings& s, const std::string& t) { s.flip_wait = span(t); },
            [](const Settings& s) { return exact_duration(s.flip_wait); }},
    Setting{"verify", kText, "WHEN", "stream",
            "stream: readers get bytes as they arrive, and the file is kept only if its digest "
            "matches. strict: readers wait until the whole file is verified. It needs the store: not with "
            "mode off or shadow or admission never, and a local disk that is full or fails is an "
            "error of the read.",
            [](Settings& s, const std::string& t) { s.verify = word(kVerifications, t); },
            [](const Settings& s) { return word_of(kVerifications, s.verify); }},
    Setting{"verify_open", kText, "WHEN", "boot",
            "When the parts of a kept file are checked before it is served: boot (once per boot), "
            "always or never.",
            [](Settings& s, const std::string& t) { s.verify_open = word(kOpenChecks, t); },
            [](const Settings& s) { return word_of(kOpenChecks, s.verify_open); }},
    Setting{"passthrough", kBoolean, "", "true",
            "Do not let the kernel read complete files by itself; serve every read from the daemon.",
            [](Settings& s, const std::string& t) { s.passthrough = word(kBooleans, t); },
            [](const Settings& s) { return word_of(kBooleans, s.passthrough); }},
    Setting{"connections", kNumber, "N", "64",
            "Ranged requests at once, in all.",
            [](Settings& s, const std::string& t) { s.connections = number(t, 1, 4096); },
            [](const Settings& s) { return fmt::format("{}", s.connections); }},
    Setting{"connections_per_blob", kNumber, "N", "16",
            "Ranged requests at once for one file.",
            [](Settings& s, const std::string& t) { s.connections_per_blob = number(t, 1, 4096); },
            [](const Settings& s) { return fmt::format("{}", s.connections_per_blob); }},
    Setting{"part_size", kText, "SIZE", "8MiB",
            "The largest ranged request.",
            [](Settings& s, const std::string& t) { s.part_size = size(t, 64 * kKiB, kGiB); },
            [](const Settings& s) { return exact_size(s.part_size); }},
    Setting{"fill_bandwidth", kText, "RATE", "unlimited",
            "How much is fetched from sources at most, as in 500MB/s: readers first, what is fetched "
            "ahead of them gets the rest.",
            [](Settings& s, const std::string& t) { s.fill_bandwidth = rate(t); },
            [](const Settings& s) { return exact_rate(s.fill_bandwidth); }},
    Setting{"write_bandwidth", kText, "RATE", "unlimited",
            "How much of it is written to the store at most, likewise.",
            [](Settings& s, const std::string& t) { s.write_bandwidth = rate(t); },
            [](const Settings& s) { return exact_rate(s.write_bandwidth); }},
    Setting{"yield_to_readers", kBoolean, "", "true",
            "Do not slow down what is fetched for nobody in particular (warm) while others read the "
            "disk that the store is on.",
            [](Settings& s, const std::string& t) { s.yield_to_readers = word(kBooleans, t); },
            [](const Settings& s) { return word_of(kBooleans, s.yield_to_readers); }},
    Setting{"deadline", kText, "DURATION", "120s",
            "A read ends with an error when nothing of its file has arrived for this long.",
            [](Settings& s, const std::string& t) { s.deadline = duration(t); },
            [](const Settings& s) { return exact_duration(s.deadline); }},
    Setting{"stall_timeout", kText, "DURATION", "30s",
            "A ranged request that moves no byte for this long is made again.",
            [](Settings& s, const std::string& t) { s.stall_timeout = duration(t); },
            [](const Settings& s) { return exact_duration(s.stall_timeout); }},
    Setting{"read_ahead", kText, "SIZE", "4MiB",
            "How far the kernel reads ahead of a sequential reader of the mount.",
            [](Settings& s, const std::string& t) { s.read_ahead = size(t, 0, kGiB); },
            [](const Settings& s) { return exact_size(s.read_ahead); }},
    Setting{"hash_threads", kNumber, "N", "0",
            "Files hashed at once. 0: half the processors, from 1 to 8.",
            [](Settings& s, const std::string& t) { s.hash_threads = number(t, 0, 256); },
            [](const Settings& s) { return fmt::format("{}", s.hash_threads); }},
    Setting{"fuse_threads", kNumber, "N", "0",
            "Threads that take requests from the kernel. 0: one per processor, from 2 to 16.",
            [](Settings& s, const std::string& t) { s.fuse_threads = number(t, 0, 256); },
            [](const Settings& s) { return fmt::format("{}", s.fuse_threads); }},
    Setting{"allow_network_store", kBoolean, "", "false",
            "Let the store live on a network filesystem, which defeats its purpose.",
            [](Settings& s, const std::string& t) { s.allow_network_store = word(kBooleans, t); },
            [](const Settings& s) { return word_of(kBooleans, s.allow_network_store); }},
    Setting{"event_log_size", kText, "SIZE", "64MiB",
            "How large the log of events in the state directory becomes before it is begun anew; the one "
            "before is kept. 0: none.",
            [](Settings& s, const std::string& t) { s.event_log_size = size(t, 0, 1024 * kGiB); },
            [](const Settings& s) { return exact_size(s.event_log_size); }},
    Setting{"log_level", kText, "LEVEL", "info",
            "debug, info, warning or error.",
            [](Settings& s, const std::string& t) { s.log_level = word(kLogLevels, t); },
            [](const Settings& s) { return word_of(kLogLevels, s.log_level); }},
    Setting{"ca_bundle", kText, "PATH", "",
            "PEM file with the certificate authorities to trust. Default: the system's.",
            [](Settings& s, const std::string& t) { if (!t.empty()) s.ca_bundle = absolute_path(t); },
            [](const Settings& s) { return s.ca_bundle.string(); }},
    Setting{"credentials", kText, "PATH", "",
            "JSON file with tokens, passwords and client certificates for the servers of sources, by URL; read "
            "again when it changes. The daemon's user must be able to read it, and others should not.",
            [](Settings& s, const std::string& t) { if (!t.empty()) s.credentials.file = absolute_path(t); },
            [](const Settings& s) { return s.credentials.file.string(); }},
    Setting{"hf_endpoint", kText, "URL", "https://huggingface.co",
            "The Hugging Face Hub, or a mirror of it, that hf:// sources are read from.",
            [](Settings& s, const std::string& t) { s.hub.endpoint = snapshot::hub_endpoint(t); },
            [](const Settings& s) { return s.hub.endpoint; }, "HF_ENDPOINT"},
    Setting{"hf_token_path", kText, "PATH", "",
            "File with the token for it, read again when it changes; the daemon's user must be able to. "
            "Where HF_TOKEN is set, that is the token.",
            [](Settings& s, const std::string& t) { if (!t.empty()) s.hub.token_file = absolute_path(t); },
            [](const Settings& s) { return s.hub.token_file.string(); }, "HF_TOKEN_PATH"},
};
// clang-format on

bool on_by_default(const Setting& setting) noexcept {
  return setting.kind == SettingKind::kBoolean && setting.default_text == "true";
}

}  // namespace

std::span<const Setting> setting_table() noexcept {
  return kTable;
}

bool taken_on_reload(std::string_view name) noexcept {
  return name == "fill_bandwidth" || name == "write_bandwidth";
}

const Setting* find_setting(std::string_view name) noexcept {
  for (const Setting& setting : kTable) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

std::string flag(const Setting& setting) {
  std::string text = on_by_default(setting) ? "--no-" : "--";
  for (const char c : setting.name) text += c == '_' ? '-' : c;
  return text;
}

std::string flag_value(const Setting& setting) {
  return on_by_default(setting) ? "false" : "true";
}

std::string environment_variable(const Setting& setting) {
  std::string text = "WEIGHTFS_";
  for (const char c : setting.name) {
    text += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return text;
}

}  // namespace weightfs::cli
