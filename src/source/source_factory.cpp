// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/source_factory.hpp"

#include "base/error.hpp"
#include "snapshot/hub_reference.hpp"
#include "snapshot/release.hpp"
#include "source/file/file_source.hpp"
#include "source/hf/hf_source.hpp"
#include "source/http/http_source.hpp"
#include "source/release/release_source.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace weightfs::source {

namespace {

SourcePtr make_release(const snapshot::Reference& reference, net::HttpClient& http, HubPool& hubs) {
  auto release = snapshot::Release::parse(reference.text());
  std::vector<SourcePtr> sources;
  for (const snapshot::ReleasePart& part : release.parts()) {
    sources.push_back(make_source(part.source, http, hubs));
  }
  return std::make_shared<ReleaseSource>(std::move(release), std::move(sources));
}

}  // namespace

SourcePtr make_source(const snapshot::Reference& reference, net::HttpClient& http, HubPool& hubs) {
  switch (reference.scheme()) {
    case snapshot::Scheme::kFile:
      return std::make_shared<FileSource>(reference);
    case snapshot::Scheme::kHttp:
    case snapshot::Scheme::kHttps:
      return std::make_shared<HttpSource>(reference, http);
    case snapshot::Scheme::kRelease:
      return make_release(reference, http, hubs);
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
