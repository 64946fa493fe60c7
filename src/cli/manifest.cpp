// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/file.hpp"
#include "base/quantity.hpp"
#include "cli/directory_listing.hpp"
#include "cli/printable.hpp"
#include "cli/progress_line.hpp"
#include "control/json_codec.hpp"
#include "snapshot/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace weightfs::cli {

namespace {

constexpr std::string_view kStandardOutput = "-";

class ManifestCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.argument("DIR", "The directory.", directory_);
    options.option({"--output", "FILE", "Write to this file instead; - is standard output."},
                   output_);
    options.number({"--threads", "N", "Files hashed at once. Default: one per processor."},
                   threads_, 1, 256);
  }

  ExitCode run(Context& context) override {
    Streams& streams = context.streams();
    DirectoryListing listing = list_directory(directory_);
    for (const std::string& skipped : listing.skipped) {
      streams.err << "weightfs: skipped " << printable(skipped) << '\n';
    }
    const std::uint64_t total = hash_all(streams, listing.files);
    const std::string text = snapshot::write_manifest(listing.files);
    if (output_ == kStandardOutput) {
      streams.out << text;
      return ExitCode::kDone;
    }
    const std::filesystem::path path =
        output_.empty() ? std::filesystem::path(directory_) / snapshot::kManifestName
                        : std::filesystem::path(output_);
    write_file_durably(path, text);
    report(context, path, listing.files.size(), total);
    return ExitCode::kDone;
  }

 private:
  std::uint64_t hash_all(Streams& streams, std::vector<snapshot::File>& files) const {
    std::uint64_t total = 0;
    for (const snapshot::File& file : files) total += file.size;
    ProgressLine line(streams);
    hash_files(
        directory_, files,
        {.threads = threads_ > 0 ? threads_ : std::max(1U, std::thread::hardware_concurrency()),
         .progress = [&](std::uint64_t hashed) {
           line.update(std::chrono::steady_clock::now(), "hashing", hashed, total);
         }});
    return total;
  }

  static void report(Context& context, const std::filesystem::path& path, std::size_t files,
                     std::uint64_t bytes) {
    if (context.json()) {
      control::Json json;
      json["manifest"] = path.string();
      json["files"] = files;
      json["bytes"] = bytes;
      context.print_json(json);
    } else {
      context.streams().out << fmt::format("{}: {} files, {}\n", printable(path.string()), files,
                                           readable_size(bytes));
    }
  }

  std::string directory_;
  std::string output_;
  unsigned threads_ = 0;
};

}  // namespace

CommandEntry manifest_command() {
  return {
      .name = "manifest",
      .summary = "Describe a directory in a weightfs.json, for serving it over http",
      .text =
          "Hashes every file below DIR and writes DIR/weightfs.json: path, size, sha256, time and "
          "executable bit of each, in the order of their paths, so that the same files give the "
          "same "
          "manifest. Put DIR behind any web server that answers ranges, and its URL is a source. "
          "Links "
          "to files are taken as files, links to directories are left out. Needs no daemon.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<ManifestCommand>()); },
  };
}

}  // namespace weightfs::cli
