// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/use_log.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <list>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace weightfs::cache {

namespace {

constexpr std::string_view kHeader = "weightfs uses 1\n";
constexpr std::uint64_t kMaxBytes = 256ULL << 20;

std::string line_of(const policy::References::Record& record) {
  return fmt::format("reference {} {:016x} {}\n", record.snapshot.hex(), record.first_consumer,
                     record.proven ? "proven" : "once");
}

std::string line_of(const UseLog::Use& use) {
  return fmt::format("use {} {} {}\n", use.snapshot.hex(),
                     use.area == policy::Area::kResident ? "resident" : "probation", use.time);
}

/// The last word on each snapshot, in the order of the last words.
template <class T>
class Latest {
 public:
  void put(const Digest& key, T value) {
    drop(key);
    places_.emplace(key, order_.insert(order_.end(), std::move(value)));
  }
  void drop(const Digest& key) {
    if (const auto found = places_.extract(key)) order_.erase(found.mapped());
  }
  [[nodiscard]] std::vector<T> take() { return {order_.begin(), order_.end()}; }

 private:
  std::list<T> order_;
  std::unordered_map<Digest, typename std::list<T>::iterator> places_;
};

class Reader {
 public:
  void line(const std::string& text) {
    std::istringstream words(text);
    std::string kind;
    std::string hex;
    if (!(words >> kind >> hex)) return;
    const std::optional<Digest> snapshot = Digest::parse(hex);
    if (!snapshot) return;
    if (kind == "drop") {
      uses_.drop(*snapshot);
    } else if (kind == "use") {
      use(*snapshot, words);
    } else if (kind == "reference") {
      reference(*snapshot, words);
    }
  }
  [[nodiscard]] UseLog::Memory take() { return {references_.take(), uses_.take()}; }

 private:
  void use(const Digest& snapshot, std::istream& words) {
    std::string area;
    UseLog::Use use{.snapshot = snapshot};
    if (!(words >> area >> use.time)) return;
    if (area != "resident" && area != "probation") return;
    use.area = area == "resident" ? policy::Area::kResident : policy::Area::kProbation;
    uses_.put(snapshot, use);
  }
  void reference(const Digest& snapshot, std::istream& words) {
    policy::References::Record record{.snapshot = snapshot};
    std::string proof;
    if (!(words >> std::hex >> record.first_consumer >> proof)) return;
    if (proof != "proven" && proof != "once") return;
    record.proven = proof == "proven";
    references_.put(snapshot, record);
  }

  Latest<policy::References::Record> references_;
  Latest<UseLog::Use> uses_;
};

}  // namespace

UseLog::UseLog(std::filesystem::path file, Writing writing, Log log)
    : file_(std::move(file)), writing_(writing), log_(std::move(log)) {
  std::string text;
  try {
    text = read_file(file_, kMaxBytes);
  } catch (const Error& error) {
    if (error.code() != Errc::kNotFound) log_.warning("{}: starting afresh", error.what());
  }
  if (text.starts_with(kHeader)) {
    Reader reader;
    // A line that has no end was being written when its writer died.
    for (std::size_t at = kHeader.size(), end = 0; (end = text.find('\n', at)) != std::string::npos;
         at = end + 1) {
      reader.line(text.substr(at, end - at));
    }
    read_ = reader.take();
  } else {
    begun_ = true;
    if (!text.empty()) {
      log_.warning("{} is of another version: starting afresh", file_.string());
    }
  }
  rewrite(read_);
}

void UseLog::reference(const policy::References::Record& record) {
  append(line_of(record));
}

void UseLog::use(const Use& use) {
  append(line_of(use));
}

void UseLog::drop(const Digest& snapshot) {
  append(fmt::format("drop {}\n", snapshot.hex()));
}

void UseLog::rewrite(const Memory& memory) {
  live_ = lines_ = memory.references.size() + memory.uses.size();
  if (writing_ == Writing::kNothing) return;
  std::string text(kHeader);
  for (const auto& record : memory.references) text += line_of(record);
  for (const Use& use : memory.uses) text += line_of(use);
  try {
    write_file_durably(file_, text, 0600);
    fd_ = open_file(file_, O_WRONLY | O_APPEND);
  } catch (const Error& error) {
    failed(error.what());
  }
}

void UseLog::append(const std::string& line) {
  ++lines_;
  if (!fd_) return;
  const ssize_t written = ::write(fd_.value(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) failed("a line could not be written");
}

void UseLog::failed(const char* what) {
  if (std::exchange(complained_, true)) return;
  log_.warning("{}: {}; the order of use is kept in memory only", file_.string(), what);
}

}  // namespace weightfs::cache
