// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "control/import_report.hpp"
#include "control/service.hpp"
#include "fetch/importer.hpp"
#include "fetch/wanted_files.hpp"
#include "source/file/local_tree.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace weightfs::control {

/// What these names show and would be rolled back to; without names, also what is leased.
Service::Snapshots Service::importable(const std::vector<std::string>& names) const {
  Snapshots snapshots;
  const auto add = [&](const catalog::Model& model) {
    if (auto shown = parts_.catalog.snapshot(model.current)) snapshots.push_back(std::move(shown));
    if (!model.confirmed || model.confirmed == model.current) return;
    if (auto back = parts_.catalog.snapshot(*model.confirmed)) snapshots.push_back(std::move(back));
  };
  for (const std::string& name : names) add(require(name));
  if (!names.empty()) return snapshots;
  for (const catalog::Model& model : parts_.catalog.list()) add(model);
  std::ranges::copy(leased(), std::back_inserter(snapshots));
  return snapshots;
}

/// What an import does not look into: the mount, which would wait for the daemon that waits for it,
/// and the directories of the store.
class Service::Spared {
 public:
  Spared(const std::string& mountpoint, const std::vector<store::VolumeStatus>& volumes) {
    struct stat status{};
    if (::stat(mountpoint.c_str(), &status) == 0) mount_ = status.st_dev;
    for (const store::VolumeStatus& volume : volumes) {
      if (::stat(volume.directory.c_str(), &status) == 0) {
        stores_.emplace_back(status.st_dev, status.st_ino);
      }
    }
  }

  [[nodiscard]] bool is_mount(const struct stat& status) const { return status.st_dev == mount_; }
  [[nodiscard]] bool contains(const struct stat& directory) const {
    return is_mount(directory) ||
           std::ranges::find(stores_, std::pair(directory.st_dev, directory.st_ino)) !=
               stores_.end();
  }

 private:
  std::optional<dev_t> mount_;
  std::vector<std::pair<dev_t, ino_t>> stores_;
};

api::ImportResult Service::import_files(const api::ImportRequest& request, const Job& job) {
  require_store("nothing can be imported");
  if (!keeps()) {
    throw Error(Errc::kUnsupported, fmt::format("nothing can be imported: nothing is kept with "
                                                "mode {}",
                                                cache::name(parts_.cache.mode())));
  }
  const Spared spared(parts_.mount.mount_info().mountpoint, parts_.store.volumes());
  struct stat named{};
  if (::stat(request.directory.c_str(), &named) == 0 && spared.contains(named)) {
    throw Error(Errc::kInvalid, request.directory + " lies in the mount, or is the store itself");
  }
  job.report({.stage = "importing"});

  fetch::WantedFiles wanted;
  std::uint64_t without_digest = 0;
  for (const auto& snapshot : importable(request.names)) {
    without_digest += static_cast<std::uint64_t>(std::ranges::count_if(
        snapshot->files(), [](const snapshot::File& file) { return !file.sha256; }));
    wanted.add(snapshot, parts_.sources.get(snapshot->source()));
  }
  const auto tree = std::make_shared<source::LocalTree>(request.directory);
  const auto listing =
      tree->list({.is_wanted = [&](std::uint64_t size) { return wanted.has_size(size); },
                  .is_spared = [&](const struct stat& status) { return spared.contains(status); }},
                 job.stop);
  ImportReport report(*tree, [&](const fetch::Target& target) {
    return name_of(*target.snapshot) + "/" + target.file().path;
  });
  report.add(listing);

  std::uint64_t total = 0;
  for (const auto& file : listing.files) total += file.size;
  if (!request.dry_run) total *= 2;  // each is read, and then taken
  std::atomic<std::uint64_t> bytes = 0;
  fetch::Importer importer(
      {.fetcher = parts_.fetcher,
       .store = parts_.store,
       .wanted = wanted,
       .tree = tree,
       .admit = [&](const snapshot::SnapshotPtr& snapshot) { parts_.cache.admit(snapshot); },
       .on_file = [&](const fetch::Importer::Imported& imported) { report.add(imported); },
       .on_bytes =
           [&](std::uint64_t more) {
             job.report(
                 {.stage = "importing", .bytes = std::min(bytes += more, total), .total = total});
           }},
      {.how = request.link ? fetch::Importer::How::kLink : fetch::Importer::How::kCopy,
       .dry_run = request.dry_run ? fetch::Importer::DryRun::kYes : fetch::Importer::DryRun::kNo,
       .hashers = parts_.hash_threads});
  importer.run(listing.files, job.stop);
  api::ImportResult result = report.result();
  result.dry_run = request.dry_run;
  result.without_digest = without_digest;
  return result;
}

}  // namespace weightfs::control
