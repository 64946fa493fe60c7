// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "base/quantity.hpp"
#include "control/residency.hpp"
#include "control/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace weightfs::control {

namespace {

/// The path within the mount.
std::string inside_mount(const std::string& path, const std::string& mountpoint) {
  if (!path.starts_with('/')) return path;
  if (path == mountpoint) return "";
  if (!mountpoint.empty() && path.starts_with(mountpoint + "/")) {
    return path.substr(mountpoint.size() + 1);
  }
  throw Error(Errc::kNotFound, fmt::format("{} is not under the mount point {}", path, mountpoint));
}

bool has_directory(const snapshot::Snapshot& snapshot, const std::string& path) {
  const std::string prefix = path + "/";
  return std::ranges::any_of(
      snapshot.files(), [&](const snapshot::File& file) { return file.path.starts_with(prefix); });
}

std::string size_of(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{} of {}", readable_size(part), readable_size(whole));
}

/// State, sentence and next step of a file, from the facts.
void explain_file(api::Why& why, bool complete) {
  if (complete) {
    why.state = "complete";
    why.sentence = "Complete: verified, and read at the speed of the local disk.";
  } else if (why.fill && why.fill->state == "filling") {
    why.state = "filling";
    why.sentence = fmt::format("Being fetched: {} are here, {}/s from {} connections.",
                               size_of(why.resident_bytes, why.size), readable_size(why.fill->rate),
                               why.fill->connections);
    if (why.fill->parked > 0) {
      why.sentence += fmt::format(" {} reads wait for their bytes.", why.fill->parked);
    }
    why.next_step = fmt::format("'weightfs wait {}' returns when it is complete.", why.name);
  } else if (why.error) {
    why.state = "failed";
    why.sentence = fmt::format("The last attempt to fetch it failed: {}", why.error->message);
    why.next_step =
        "The next open tries again; 'weightfs update' asks the source for what it has now.";
  } else if (why.resident_bytes > 0) {
    why.state = "partial";
    why.sentence = fmt::format("Fetched in part: {} are here; the rest comes when it is read.",
                               size_of(why.resident_bytes, why.size));
    why.next_step = fmt::format("'weightfs warm {}' fetches the rest now.", why.name);
  } else {
    why.state = "not_fetched";
    why.sentence = fmt::format("Not fetched yet: the first read gets it from {}.", why.source);
    why.next_step = fmt::format("'weightfs warm {}' fetches it now.", why.name);
  }
}

}  // namespace

api::Why Service::why(const std::string& path) {
  const std::string inside = inside_mount(path, parts_.mount.mount_info().mountpoint);
  api::Why why{.path = path};
  if (const auto target = parts_.mount.locate(inside)) {
    const fetch::Target file{.snapshot = target->snapshot, .file_index = target->file_index};
    const Residency resident = residency(parts_.store, parts_.fetcher, file);
    why.name = name_of(*file.snapshot);
    why.file = file.file().path;
    why.source = file.snapshot->source();
    why.revision = file.snapshot->revision();
    why.sha256 = file.file().sha256 ? file.file().sha256->hex() : "";
    why.size = file.file().size;
    why.resident_bytes = resident.bytes;
    for (const fetch::FillPtr& fill : parts_.fetcher.fills()) {
      if (fill->target().key() == file.key()) why.fill = fill_status(*fill);
    }
    auto sentence = parts_.mount.last_error(file.key());
    if (!sentence) sentence = parts_.mount.last_error(file.unlearned_key());
    if (why.fill && why.fill->error) {
      why.error = why.fill->error;
    } else if (sentence) {
      why.error = api::Fault{.code = {}, .message = *sentence};
    }
    explain_file(why, resident.complete);
    return why;
  }
  explain_directory(why, inside);
  return why;
}

void Service::explain_directory(api::Why& why, const std::string& inside) const {
  for (const catalog::Model& model : parts_.catalog.list()) {
    const bool whole = inside == model.name;
    if (!whole && !inside.starts_with(model.name + "/")) continue;
    const api::Model facts = summary(model);
    why.name = model.name;
    why.file = whole ? "" : inside.substr(model.name.size() + 1);
    why.source = model.source;
    why.revision = facts.revision;
    if (!whole && !has_directory(*current(model), why.file)) {
      why.state = "absent";
      why.sentence = fmt::format("{} has no such file at revision {}.", model.name, facts.revision);
      why.next_step = fmt::format("'weightfs ls {}' lists what it has.", model.name);
      return;
    }
    why.state = "directory";
    why.size = facts.bytes;
    why.resident_bytes = facts.resident_bytes;
    why.sentence = facts.complete
                       ? fmt::format("A directory of {}, which is complete.", model.name)
                       : fmt::format("A directory of {}, of which {} are here.", model.name,
                                     size_of(facts.resident_bytes, facts.bytes));
    if (!facts.complete) {
      why.next_step = fmt::format("'weightfs warm {}' fetches the rest now.", model.name);
    }
    return;
  }
  if (inside.empty() || parts_.catalog.is_namespace(inside)) {
    why.state = "directory";
    why.sentence = "A directory of models.";
    return;
  }
  why.state = "absent";
  why.sentence = "No model has such a name.";
  why.next_step = "'weightfs ls' lists the models, 'weightfs add NAME SOURCE' adds one.";
}

}  // namespace weightfs::control
