// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/file_list_json.hpp"

#include "base/error.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/manifest.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <limits>
#include <utility>
#include <variant>

namespace weightfs::snapshot {

namespace {

using Json = nlohmann::json;

/// Unknown members may nest; nothing that a person writes nests deeper.
constexpr std::size_t kMaxDepth = 64;

enum class Member {
  kUnknown,
  kFiles,
  kVersion,
  kKey,
  kSource,
  kSourceBase64,
  kRevision,
  kRevisionBase64,
  kPath,
  kPathBase64,
  kSize,
  kSha256,
  kMtime,
  kExecutable,
  kValidator,
  kValidatorBase64,
  kLearned,
};

struct MemberName {
  std::string_view name;
  Member member;
  bool state_only;
};

constexpr std::array kTopMembers{
    MemberName{"files", Member::kFiles, false},
    MemberName{"version", Member::kVersion, true},
    MemberName{"key", Member::kKey, true},
    MemberName{"source", Member::kSource, true},
    MemberName{"source_base64", Member::kSourceBase64, true},
    MemberName{"revision", Member::kRevision, true},
    MemberName{"revision_base64", Member::kRevisionBase64, true},
};

constexpr std::array kEntryMembers{
    MemberName{"path", Member::kPath, false},
    MemberName{"path_base64", Member::kPathBase64, false},
    MemberName{"size", Member::kSize, false},
    MemberName{"sha256", Member::kSha256, false},
    MemberName{"mtime", Member::kMtime, false},
    MemberName{"executable", Member::kExecutable, false},
    MemberName{"validator", Member::kValidator, true},
    MemberName{"validator_base64", Member::kValidatorBase64, true},
    MemberName{"learned", Member::kLearned, true},
};

/// Members that were seen in the current object.
class MemberSet {
 public:
  [[nodiscard]] bool has(Member member) const noexcept { return (bits_ & bit(member)) != 0; }
  void add(Member member) noexcept { bits_ |= bit(member); }
  void clear() noexcept { bits_ = 0; }

 private:
  static std::uint32_t bit(Member member) noexcept { return 1U << static_cast<unsigned>(member); }
  std::uint32_t bits_ = 0;
};

using Scalar = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string>;

/// The state machine behind the parser's events. Throws Error out of them, which ends the parse.
class FileListReader final : public nlohmann::json_sax<Json> {
 public:
  explicit FileListReader(Dialect dialect) : dialect_(dialect) {}

  FileListDocument take() {
    if (!top_seen_.has(Member::kFiles)) fail("\"files\" is missing");
    return std::move(document_);
  }

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(std::int64_t value) override { return scalar(value); }
  bool number_unsigned(std::uint64_t value) override { return scalar(value); }
  bool number_float(double value, const std::string&) override { return scalar(value); }
  bool string(std::string& value) override { return scalar(std::move(value)); }
  bool binary(Json::binary_t&) override { fail("binary values are not JSON"); }

  bool start_object(std::size_t) override {
    if (skipping()) return deeper();
    switch (place_) {
      case Place::kDocument:
        place_ = Place::kTop;
        break;
      case Place::kFiles:
        begin_entry();
        break;
      case Place::kTop:
      case Place::kEntry:
        skip_or_fail();
        break;
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (skipping()) return deeper();
    switch (place_) {
      case Place::kDocument:
        fail("the document is not an object");
      case Place::kFiles:
        fail("is not an object");
      case Place::kTop:
        if (member_ == Member::kFiles) {
          place_ = Place::kFiles;
          break;
        }
        skip_or_fail();
        break;
      case Place::kEntry:
        skip_or_fail();
        break;
    }
    return true;
  }

  bool end_object() override {
    if (skipping()) return shallower();
    if (place_ == Place::kEntry) end_entry();
    return true;
  }

  bool end_array() override {
    if (skipping()) return shallower();
    place_ = Place::kTop;
    return true;
  }

  bool key(std::string& name) override {
    if (skipping()) return true;
    const bool top = place_ == Place::kTop;
    member_ = top ? find(kTopMembers, name) : find(kEntryMembers, name);
    if (member_ == Member::kUnknown) return true;
    MemberSet& seen = top ? top_seen_ : entry_seen_;
    if (seen.has(member_)) fail(fmt::format("\"{}\" appears twice", name));
    seen.add(member_);
    member_name_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw Error(Errc::kInvalid, fmt::format("not JSON: syntax error at byte {}", position));
  }

 private:
  enum class Place { kDocument, kTop, kFiles, kEntry };

  [[nodiscard]] bool skipping() const noexcept { return skipped_depth_ > 0; }

  bool deeper() {
    if (++skipped_depth_ > kMaxDepth) fail(fmt::format("nested deeper than {} levels", kMaxDepth));
    return true;
  }

  bool shallower() noexcept {
    --skipped_depth_;
    return true;
  }

  void skip_or_fail() {
    if (member_ != Member::kUnknown) wrong_type();
    skipped_depth_ = 1;
  }

  template <std::size_t N>
  [[nodiscard]] Member find(const std::array<MemberName, N>& names,
                            std::string_view name) const noexcept {
    for (const MemberName& known : names) {
      if (known.name != name) continue;
      return known.state_only && dialect_ == Dialect::kManifest ? Member::kUnknown : known.member;
    }
    return Member::kUnknown;
  }

  void begin_entry() {
    if (document_.files.size() >= kMaxFiles) fail(fmt::format("more than {} files", kMaxFiles));
    place_ = Place::kEntry;
    entry_ = {};
    entry_seen_.clear();
  }

  void end_entry() {
    if (entry_seen_.has(Member::kPath) == entry_seen_.has(Member::kPathBase64)) {
      fail(entry_seen_.has(Member::kPath) ? "has both \"path\" and \"path_base64\""
                                          : "\"path\" is missing");
    }
    if (!entry_seen_.has(Member::kSize)) fail("\"size\" is missing");
    const bool digest = entry_seen_.has(Member::kSha256);
    if (!digest && dialect_ == Dialect::kManifest) fail("\"sha256\" is missing");
    if (!digest && entry_.learned) fail("\"learned\" without \"sha256\"");
    document_.files.push_back(std::move(entry_));
    place_ = Place::kFiles;
  }

  bool scalar(Scalar value) {
    if (skipping()) return true;
    if (place_ == Place::kDocument) fail("the document is not an object");
    if (place_ == Place::kFiles) {
      entry_seen_.clear();
      fail_entry("is not an object");
    }
    File& file = entry_.file;
    switch (member_) {
      case Member::kUnknown:
        break;
      case Member::kFiles:
        wrong_type();
      case Member::kVersion:
        document_.version = whole(value);
        break;
      case Member::kKey:
        document_.key = text(value);
        break;
      case Member::kSource:
        document_.source = text(value);
        break;
      case Member::kSourceBase64:
        document_.source = decoded(value);
        break;
      case Member::kRevision:
        document_.revision = text(value);
        break;
      case Member::kRevisionBase64:
        document_.revision = decoded(value);
        break;
      case Member::kPath:
        set_path(std::move(text(value)));
        break;
      case Member::kPathBase64:
        set_path(decoded(value));
        break;
      case Member::kSize:
        file.size = size(value);
        break;
      case Member::kSha256:
        file.sha256 = digest(value);
        break;
      case Member::kMtime:
        file.mtime = integer(value);
        break;
      case Member::kExecutable:
        file.executable = boolean(value);
        break;
      case Member::kValidator:
        file.validator = std::move(text(value));
        break;
      case Member::kValidatorBase64:
        file.validator = decoded(value);
        break;
      case Member::kLearned:
        entry_.learned = boolean(value);
        break;
    }
    return true;
  }

  void set_path(std::string path) {
    entry_.file.path = std::move(path);
    try {
      check_path(entry_.file.path);
    } catch (const Error& error) {
      throw Error(Errc::kInvalid,
                  fmt::format("files[{}]: {}", document_.files.size(), error.what()));
    }
  }

  std::string& text(Scalar& value) {
    if (auto* string = std::get_if<std::string>(&value)) return *string;
    wrong_type();
  }

  std::string decoded(Scalar& value) {
    if (auto bytes = from_base64(text(value))) return *std::move(bytes);
    fail(fmt::format("\"{}\" is not base64", member_name_));
  }

  Digest digest(Scalar& value) {
    if (const auto sha256 = Digest::parse(text(value))) return *sha256;
    fail("\"sha256\" is not 64 hexadecimal digits");
  }

  bool boolean(const Scalar& value) {
    if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
    wrong_type();
  }

  std::uint64_t whole(const Scalar& value) {
    if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number;
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      if (*number >= 0) return static_cast<std::uint64_t>(*number);
      fail(fmt::format("\"{}\" is negative", member_name_));
    }
    wrong_type();
  }

  std::uint64_t size(const Scalar& value) {
    // A number beyond 64 bits reaches us as floating point; 1.5 and 1e3 do, too.
    if (const auto* number = std::get_if<double>(&value)) {
      fail(*number < 0 ? "\"size\" is negative" : "\"size\" is too large or not a whole number");
    }
    const std::uint64_t size = whole(value);
    if (size > kMaxFileSize) fail("\"size\" is larger than a file can be");
    return size;
  }

  std::int64_t integer(const Scalar& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
    const std::uint64_t number = whole(value);
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(fmt::format("\"{}\" is too large", member_name_));
    }
    return static_cast<std::int64_t>(number);
  }

  [[noreturn]] void wrong_type() const {
    fail(fmt::format("\"{}\" has the wrong type", member_name_));
  }

  [[noreturn]] void fail(const std::string& what) const {
    if (place_ == Place::kEntry || place_ == Place::kFiles) fail_entry(what);
    throw Error(Errc::kInvalid, what);
  }

  [[noreturn]] void fail_entry(const std::string& what) const {
    const bool named = place_ == Place::kEntry && !entry_.file.path.empty();
    const std::string path = named ? " (" + printable(entry_.file.path) + ")" : std::string();
    throw Error(Errc::kInvalid, fmt::format("files[{}]{}: {}", document_.files.size(), path, what));
  }

  const Dialect dialect_;
  Place place_ = Place::kDocument;
  /// Levels below an unknown member; 0 outside of one.
  std::size_t skipped_depth_ = 0;
  Member member_ = Member::kUnknown;
  std::string member_name_;
  MemberSet top_seen_;
  MemberSet entry_seen_;
  FileEntry entry_;
  FileListDocument document_;
};

std::string json_string(std::string_view text) {
  return Json(text).dump();
}

}  // namespace

FileListDocument parse_file_list(std::string_view json, Dialect dialect) {
  FileListReader reader(dialect);
  if (!Json::sax_parse(json.begin(), json.end(), &reader)) {
    throw Error(Errc::kInvalid, "not JSON");
  }
  return reader.take();
}

std::string bytes_member(std::string_view name, std::string_view bytes) {
  if (is_utf8(bytes)) return fmt::format("\"{}\":{}", name, json_string(bytes));
  return fmt::format("\"{}_base64\":\"{}\"", name, to_base64(bytes));
}

std::string write_file_entry(const FileEntry& entry) {
  const File& file = entry.file;
  std::string text = "{" + bytes_member("path", file.path);
  text += fmt::format(",\"size\":{}", file.size);
  if (file.sha256) text += fmt::format(",\"sha256\":\"{}\"", file.sha256->hex());
  if (file.mtime != 0) text += fmt::format(",\"mtime\":{}", file.mtime);
  if (file.executable) text += ",\"executable\":true";
  if (!file.validator.empty()) text += "," + bytes_member("validator", file.validator);
  if (entry.learned) text += ",\"learned\":true";
  return text + "}";
}

}  // namespace weightfs::snapshot
