// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/error.hpp"
#include "base/quantity.hpp"
#include "control/residency.hpp"
#include "control/service.hpp"
#include "snapshot/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

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

/// What is there that is no model's.
std::string sentence_about(vfs::TreeTable::Kind kind) {
  using Kind = vfs::TreeTable::Kind;
  switch (kind) {
    case Kind::kSnapshots:
      return "The directory of snapshots, by their ids.";
    case Kind::kHub:
    case Kind::kLinks:
      return "A directory of the layout that the Hub's own libraries take for their cache.";
    case Kind::kText:
      return "A file of the layout that the Hub's own libraries take for their cache; it is made "
             "when it is read.";
    case Kind::kNamespace:
    case Kind::kView:
      break;
  }
  return "A directory of models: 'weightfs ls' lists them.";
}

bool is_of_hub(vfs::TreeTable::Kind kind) {
  using Kind = vfs::TreeTable::Kind;
  return kind == Kind::kHub || kind == Kind::kLinks || kind == Kind::kText;
}

std::string size_of(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{} of {}", readable_size(part), readable_size(whole));
}

}  // namespace

api::Why Service::why(const std::string& path) {
  const std::string inside = inside_mount(path, parts_.mount.mount_info().mountpoint);
  api::Why why{.path = path};
  const auto place = parts_.mount.locate(inside);
  if (!place) {
    explain_absent(why, inside);
  } else if (place->file() != nullptr) {
    explain_file(why, *place);
  } else {
    explain_directory(why, *place);
  }
  return why;
}

void Service::describe(api::Why& why, const vfs::Place& view) const {
  // As the path says it: name_of() knows one of several names that show a snapshot.
  const std::string& path = view.tree.path;
  const std::string name = path.starts_with('.') ? name_of(*view.snapshot) : path;
  why.name = name.substr(0, name.find('@'));
  why.file = view.layout->path(view.index);
  why.source = snapshot::shown_source(view.snapshot->source());
  why.revision = view.snapshot->revision();
}

/// warm and wait are about the current revision.
std::string Service::fetch_now(const std::string& name, const snapshot::Snapshot& shown) const {
  if (!keeps()) {
    return "Nothing is kept here ('weightfs status' says why): its bytes come as they are read.";
  }
  if (is_current(name, shown)) return fmt::format("'weightfs warm {}' fetches it now.", name);
  return fmt::format("It is not the current revision of {}: its bytes come as they are read.",
                     name);
}

/// State, sentence and next step of a file, from the facts.
void Service::explain_content(api::Why& why, bool complete, const snapshot::Snapshot& shown) const {
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
    if (keeps() && is_current(why.name, shown)) {
      why.next_step = fmt::format("'weightfs wait {}' returns when it is complete.", why.name);
    }
  } else if (why.error) {
    why.state = "failed";
    why.sentence = fmt::format("The last attempt to fetch it failed: {}", why.error->message);
    why.next_step =
        "The next open tries again; 'weightfs update' asks the source for what it has now.";
  } else if (why.resident_bytes > 0) {
    why.state = "partial";
    why.sentence = fmt::format("Fetched in part: {} are here; the rest comes when it is read.",
                               size_of(why.resident_bytes, why.size));
    why.next_step = fetch_now(why.name, shown);
  } else {
    why.state = "not_fetched";
    why.sentence = fmt::format("Not fetched yet: the first read gets it from {}.", why.source);
    why.next_step = fetch_now(why.name, shown);
  }
}

bool Service::is_current(const std::string& name, const snapshot::Snapshot& snapshot) const {
  const auto model = parts_.catalog.find(name);
  return model && model->current == snapshot.key();
}

void Service::explain_file(api::Why& why, const vfs::Place& place) const {
  describe(why, place);
  const fetch::Target file{.snapshot = place.snapshot, .file_index = *place.node().file};
  const Residency resident = residency(parts_.store, parts_.fetcher, file);
  why.sha256 = file.file().sha256 ? file.file().sha256->hex() : "";
  why.size = file.file().size;
  why.resident_bytes = resident.bytes;
  for (const fetch::FillPtr& fill : parts_.fetcher.fills()) {
    if (fill->target().key() != file.key()) continue;
    why.fill = fill_status(*fill);
    // As the path says it: the fill may have begun for another model with the same bytes.
    why.fill->name = why.name;
    why.fill->path = why.file;
    why.fill->also = others_with(file, why.name);
  }
  auto sentence = parts_.mount.last_error(file.key());
  if (!sentence) sentence = parts_.mount.last_error(file.unlearned_key());
  if (why.fill && why.fill->error) {
    why.error = why.fill->error;
  } else if (sentence) {
    why.error = api::Fault{.code = {}, .message = *sentence};
  }
  explain_content(why, resident.complete, *place.snapshot);
}

void Service::explain_directory(api::Why& why, const vfs::Place& place) {
  why.state = "directory";
  if (!place.is_view()) {
    if (place.kind() == vfs::Kind::kFile) why.state = "generated";
    why.sentence = sentence_about(place.tree.kind);
    return;
  }
  describe(why, place);
  const std::string prefix = why.file.empty() ? "" : why.file + "/";
  bool complete = true;
  for (std::size_t i = 0; i < place.snapshot->files().size(); ++i) {
    const fetch::Target file{.snapshot = place.snapshot, .file_index = i};
    if (!file.file().path.starts_with(prefix)) continue;
    const Residency resident = residency(parts_.store, parts_.fetcher, file);
    why.size += file.file().size;
    why.resident_bytes += resident.bytes;
    complete = complete && resident.complete;
  }
  if (complete) {
    why.sentence = fmt::format("A directory of {}, which is complete.", why.name);
  } else {
    why.sentence = fmt::format("A directory of {}, of which {} are here.", why.name,
                               size_of(why.resident_bytes, why.size));
    why.next_step = fetch_now(why.name, *place.snapshot);
    if (!keeps() || !is_current(why.name, *place.snapshot)) return;
    const api::Progress warm = progress(why.name);
    if (warm.running) {
      why.sentence += " The model is being fetched.";
      why.next_step = fmt::format("'weightfs wait {}' returns when it is complete.", why.name);
    } else if (warm.error) {
      why.sentence += " The last attempt to fetch all of the model failed.";
      why.error = warm.error;
    }
  }
}

/// Says where on its way the path ends.
void Service::explain_absent(api::Why& why, std::string_view inside) const {
  why.state = "absent";
  std::optional<vfs::Place> last = parts_.mount.locate("");
  std::size_t end = 0;
  std::string_view missing;  // up to and with the first name that leads nowhere
  for (;;) {
    end = std::min(inside.find('/', end + 1), inside.size());
    missing = inside.substr(0, end);
    auto place = parts_.mount.locate(std::string(missing));
    if (!place || end == inside.size()) break;
    last = std::move(place);
  }
  if (last && last->is_view()) {
    describe(why, *last);
    why.file = inside.substr(std::min(last->tree.path.size() + 1, inside.size()));
    why.sentence = fmt::format("{} has no such file at revision {}.", why.name, why.revision);
    why.next_step = fmt::format("'weightfs ls {}' lists what its current revision has.", why.name);
  } else if (last && last->tree.kind == vfs::TreeTable::Kind::kSnapshots) {
    why.sentence = "No model has a snapshot of such an id.";
    why.next_step = "'weightfs ls --json' shows the ids of the current snapshots.";
  } else if (last && is_of_hub(last->tree.kind)) {
    why.sentence = "No model whose source is the Hub has that.";
    why.next_step = "'weightfs ls' lists the models, 'weightfs add NAME hf://ORG/NAME' adds one.";
  } else if (const auto at = missing.rfind('@');
             at < missing.size() && parts_.catalog.find(std::string(missing.substr(0, at)))) {
    why.name = missing.substr(0, at);
    why.sentence = fmt::format("{} has no revision {}, or several that begin so.", why.name,
                               missing.substr(at + 1));
    why.next_step =
        fmt::format("'weightfs update {}' asks the source for what it has now.", why.name);
  } else {
    why.sentence = "No model has such a name.";
    why.next_step = "'weightfs ls' lists the models, 'weightfs add NAME SOURCE' adds one.";
  }
}

}  // namespace weightfs::control
