// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "source/hf/scripted_hub.hpp"

#include "digest/git_blob.hpp"
#include "net/percent_encoding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weightfs::test {

namespace {

std::string blob_of(const ScriptedHub::File& file) {
  if (!file.lfs) return git_blob_id(file.content);
  return git_blob_id(
      fmt::format("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n",
                  Digest::of(file.content).hex(), file.content.size()));
}

std::string not_found(const std::string& code) {
  return answer(404, {{"X-Error-Code", code}}, code);
}

/// With the range of the request, where it has one.
std::string ranged(const SeenRequest& request, const std::string& content,
                   std::map<std::string, std::string> headers) {
  const auto range = request.header("range");
  if (!range) return answer(200, headers, content);
  const std::size_t dash = range->find('-');
  const std::size_t begin = std::stoull(range->substr(6, dash - 6));
  const std::size_t end =
      std::min<std::size_t>(std::stoull(range->substr(dash + 1)) + 1, content.size());
  headers["Content-Range"] = fmt::format("bytes {}-{}/{}", begin, end - 1, content.size());
  return answer(206, headers, content.substr(begin, end - begin));
}

/// Of what answers a HEAD: the head alone.
std::string head_of(const std::string& answer) {
  return answer.substr(0, answer.find("\r\n\r\n") + 4);
}

}  // namespace

ScriptedHub::ScriptedHub(Files files)
    : storage_(
          [this](const auto& request, auto& connection) { handle_storage(request, connection); }),
      hub_([this](const auto& request, auto& connection) { handle(request, connection); }) {
  commit(git_id('a'), std::move(files));
}

void ScriptedHub::set_fault(Fault fault) {
  fault_.with([&](Fault& known) { known = std::move(fault); });
}

void ScriptedHub::set_storage_fault(Fault fault) {
  storage_fault_.with([&](Fault& known) { known = std::move(fault); });
}

void ScriptedHub::set_page_size(std::size_t size) {
  state_.with([&](State& state) { state.page_size = size; });
}

void ScriptedHub::commit(const std::string& id, Files files) {
  state_.with([&](State& state) {
    state.commits.insert_or_assign(id, std::move(files));
    state.main = id;
  });
}

source::HubAccess ScriptedHub::access() const {
  return {.endpoint = hub_.url(""), .token = "hf_secret", .token_file = {}};
}

std::string ScriptedHub::commit() const {
  return state_.with([](const State& state) { return state.main; });
}

std::size_t ScriptedHub::count(const std::string& part) {
  const auto seen = hub_.requests();
  return static_cast<std::size_t>(std::ranges::count_if(seen, [&](const SeenRequest& request) {
    return request.target.find(part) != std::string::npos;
  }));
}

void ScriptedHub::handle(const SeenRequest& request, ScriptedServer::Connection& connection) {
  const Fault fault = fault_.with([](const Fault& known) { return known; });
  if (fault && fault(request, connection)) return;
  const std::string api = "/api/models/org/name/", resolve_path = "/org/name/resolve/";
  std::string text;
  if (request.target.starts_with(api + "revision/")) {
    const std::string revision = request.target.substr(api.size() + 9);
    text = revision == "main" || revision == "refs%2Fpr%2F1"
               ? answer(200, {}, fmt::format(R"({{"id":"org/name","sha":"{}"}})", commit()))
               : not_found("RevisionNotFound");
  } else if (request.target.starts_with(api + "tree/")) {
    text = tree(request.target.substr(api.size() + 5));
  } else if (request.target.starts_with(resolve_path)) {
    text = resolve(request, request.target.substr(resolve_path.size()));
  } else if (request.target.starts_with("/api/resolve-cache/")) {
    text = resolve(request, "cached/" + request.target.substr(19));
  } else {
    text = not_found("RepoNotFound");
  }
  connection.send(request.method == "HEAD" ? head_of(text) : text);
}

/// "COMMIT?recursive=true&expand=false[&cursor=N]"
std::string ScriptedHub::tree(const std::string& target) {
  const std::string commit = target.substr(0, target.find('?'));
  const std::size_t cursor = target.find("&cursor=");
  const std::size_t first =
      cursor == std::string::npos ? 0 : std::stoull(target.substr(cursor + 8));
  return state_.with([&](const State& state) {
    const auto found = state.commits.find(commit);
    if (found == state.commits.end()) return not_found("RevisionNotFound");
    std::string page = R"([{"type":"directory","path":"sub","oid":"","size":0})";
    std::size_t number = 0;
    for (const auto& [path, file] : found->second) {
      if (number++ < first || number > first + state.page_size) continue;
      page += fmt::format(R"(,{{"type":"file","path":"{}","size":{},"oid":"{}")", path,
                          file.lfs ? 134 : file.content.size(), blob_of(file));
      if (file.lfs) {
        page +=
            fmt::format(R"(,"lfs":{{"oid":"{}","size":{},"pointerSize":134}},"xetHash":"{}")",
                        Digest::of(file.content).hex(), file.content.size(), std::string(64, 'e'));
      }
      page += "}";
    }
    std::map<std::string, std::string> headers;
    if (number > first + state.page_size) {
      headers["Link"] = fmt::format(
          "<https://huggingface.co/api/models/org/name/tree/"
          "{}?recursive=true&expand=false&cursor={}>; rel=\"next\"",
          commit, first + state.page_size);
    }
    return answer(200, headers, page + "]");
  });
}

/// "COMMIT/PATH"; "cached/COMMIT/PATH" is where the Hub sends for files in git.
std::string ScriptedHub::resolve(const SeenRequest& request, const std::string& rest) {
  const bool cached = rest.starts_with("cached/");
  const std::string inner = cached ? rest.substr(7) : rest;
  const std::size_t slash = inner.find('/');
  const std::string commit = inner.substr(0, slash);
  const std::string path = net::percent_decode(inner.substr(slash + 1)).value();
  return state_.with([&](State& state) {
    const auto found = state.commits.find(commit);
    if (found == state.commits.end()) return not_found("RevisionNotFound");
    const auto file = found->second.find(path);
    if (file == found->second.end()) return not_found("EntryNotFound");
    std::map<std::string, std::string> headers{{"X-Repo-Commit", commit}};
    const std::string& content = file->second.content;
    if (file->second.lfs) {
      headers["X-Linked-Etag"] = '"' + Digest::of(content).hex() + '"';
      headers["X-Linked-Size"] = std::to_string(content.size());
      headers["Location"] =
          fmt::format("{}/{}?X-Amz-Signature=s{}&X-Amz-Expires=3600&X-Amz-Date=20260830T101112Z",
                      storage_.url(""), inner, ++state.signatures);
      headers["Date"] = "Sun, 30 Aug 2026 10:11:12 GMT";
      return answer(302, headers, "");
    }
    if (!cached) {
      headers["Location"] = "/api/resolve-cache/" + inner;
      return answer(307, headers, "");
    }
    headers["ETag"] = '"' + git_blob_id(content) + '"';
    return ranged(request, content, headers);
  });
}

void ScriptedHub::handle_storage(const SeenRequest& request,
                                 ScriptedServer::Connection& connection) {
  const Fault fault = storage_fault_.with([](const Fault& known) { return known; });
  if (fault && fault(request, connection)) return;
  const std::string inner = request.target.substr(1, request.target.find('?') - 1);
  const std::size_t slash = inner.find('/');
  const std::string path = net::percent_decode(inner.substr(slash + 1)).value();
  connection.send(state_.with([&](const State& state) {
    const std::string& content = state.commits.at(inner.substr(0, slash)).at(path).content;
    return ranged(request, content, {{"ETag", '"' + std::string(64, 'c') + '"'}});
  }));
}

}  // namespace weightfs::test
