// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/http/listing.hpp"

#include "base/error.hpp"
#include "net/percent_encoding.hpp"
#include "snapshot/byte_text.hpp"
#include "snapshot/manifest.hpp"
#include "source/error_context.hpp"
#include "source/http/object_info.hpp"
#include "source/http/status.hpp"
#include "source/side_by_side.hpp"

#include <optional>

namespace weightfs::source {

namespace {

/// HEADs at once, for a listing without sizes.
constexpr std::size_t kMaxAsking = 8;

/// Who knows whether a document is whole: its own syntax, or nothing but the length or the chunks
/// of the answer (RFC 9112, 6.3). Without those a lost connection looks like the end.
enum class Ending { kBySyntax, kByHttp };

/// nullopt where there is no such document. Storage services that hide what exists answer 403 for
/// 404: `forbidden` is set, and the caller goes on.
std::optional<std::string> fetch_document(const Web& web, const net::Url& url, Ending ending,
                                          const std::stop_token& stop, bool& forbidden) {
  try {
    const Credential credential = web.credential(url);
    auto [head, body] =
        web.http().fetch({.url = url.text(), .headers = credential.headers, .tls = credential.tls},
                         snapshot::kMaxManifestBytes, stop);
    if (head.status == 404 || head.status == 410) return std::nullopt;
    if (head.status == 403) {
      forbidden = true;
      return std::nullopt;
    }
    if (head.status != 200) throw_status(head, credential.origin);
    check_encoding(head);
    if (ending == Ending::kByHttp && !head.header("content-length") &&
        !head.header("transfer-encoding")) {
      throw TransientError(Errc::kUnavailable, "the answer does not say where it ends");
    }
    return std::move(body);
  } catch (...) {
    rethrow_with(url.display());
  }
}

/// Fills in sizes and times.
void ask_for_sizes(const Web& web, const net::Url& directory, std::vector<snapshot::File>& files,
                   const std::stop_token& stop) {
  const auto ask = [&](std::size_t index, const std::stop_token& end) {
    snapshot::File& file = files[index];
    try {
      const ObjectInfo info = ask_about(web, url_of(directory, file.path), end);
      file.size = info.validator.length;
      file.mtime = info.mtime;
    } catch (...) {
      rethrow_with(snapshot::printable(file.path) + ", listed in SHA256SUMS");
    }
  };
  side_by_side("http-head", kMaxAsking, files.size(), stop, ask);
}

}  // namespace

net::Url url_of(const net::Url& directory, std::string_view path) {
  return net::Url::parse(directory.text() + net::percent_encode_path(path));
}

std::string file_name_of(const net::Url& url) {
  const auto name = net::percent_decode(url.path().substr(url.path().rfind('/') + 1));
  if (!name || name->find('/') != std::string::npos) {
    throw Error(Errc::kInvalid, url.display() + " does not end in a file name");
  }
  snapshot::check_path(*name);
  return *name;
}

Listing list_directory(const Web& web, const net::Url& directory, const std::stop_token& stop) {
  bool forbidden = false;
  if (const auto manifest = fetch_document(web, url_of(directory, snapshot::kManifestName),
                                           Ending::kBySyntax, stop, forbidden)) {
    return {std::string(snapshot::kManifestName), snapshot::parse_manifest(*manifest)};
  }
  if (const auto checksums = fetch_document(web, url_of(directory, snapshot::kChecksumsName),
                                            Ending::kByHttp, stop, forbidden)) {
    std::vector<snapshot::File> files = snapshot::parse_checksums(*checksums);
    ask_for_sizes(web, directory, files, stop);
    return {std::string(snapshot::kChecksumsName), std::move(files)};
  }
  const std::string where = directory.display() + " has neither " +
                            std::string(snapshot::kManifestName) + " nor " +
                            std::string(snapshot::kChecksumsName);
  if (forbidden) throw Error(Errc::kPermission, where + " that may be read (answered 403)");
  throw Error(Errc::kNotFound, where + " (answered 404; weightfs manifest DIR writes the first)");
}

}  // namespace weightfs::source
