// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/source_factory.hpp"

#include "base/error.hpp"
#include "snapshot/hub_reference.hpp"
#include "snapshot/release.hpp"
#include "source/file/file_source.hpp"
#include "source/hf/hf_source.hpp"
#include "source/http/http_source.hpp"
#include "source/mirror/mirror_source.hpp"
#include "source/release/release_source.hpp"
#include "source/selection/selected_source.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weightfs::source {

namespace {

/// What one part of a release is put together of; `reference` is what its snapshots are from.
SourcePtr make_part(const snapshot::ReleasePart& part, const std::string& reference, Web web,
                    HubPool& hubs) {
  std::vector<SourcePtr> sources;
  for (const snapshot::Reference& source : part.sources) {
    sources.push_back(make_source(source, web, hubs));
  }
  SourcePtr made = sources.size() == 1
                       ? sources.front()
                       : std::make_shared<MirrorSource>(reference, std::move(sources));
  if (part.selection.empty()) return made;
  return std::make_shared<SelectedSource>(reference, std::move(made), part.selection);
}

SourcePtr make_release(const snapshot::Reference& reference, Web web, HubPool& hubs) {
  auto release = snapshot::Release::parse(reference.text());
  const auto* const whole = release.whole();
  const bool put_together =
      whole != nullptr && (whole->sources.size() > 1 || !whole->selection.empty());
  // Then its revision is the source's own.
  if (put_together) return make_part(*whole, reference.text(), web, hubs);
  std::vector<SourcePtr> sources;
  for (const snapshot::ReleasePart& part : release.parts()) {
    sources.push_back(make_part(part, reference.text(), web, hubs));
  }
  return std::make_shared<ReleaseSource>(std::move(release), std::move(sources));
}

}  // namespace

SourcePtr make_source(const snapshot::Reference& reference, Web web, HubPool& hubs) {
  switch (reference.scheme()) {
    case snapshot::Scheme::kFile:
      return std::make_shared<FileSource>(reference);
    case snapshot::Scheme::kHttp:
    case snapshot::Scheme::kHttps:
      return std::make_shared<HttpSource>(reference, web);
    case snapshot::Scheme::kRelease:
      return make_release(reference, web, hubs);
    case snapshot::Scheme::kHf:
      return std::make_shared<HfSource>(reference,
                                        hubs.at(snapshot::HubReference::parse(reference).endpoint));
    case snapshot::Scheme::kOci:
    case snapshot::Scheme::kS3:
      break;
  }
  throw Error(Errc::kUnsupported,
              reference.text() + ": this build reads file://, http(s):// and hf:// sources only");
}

}  // namespace weightfs::source
