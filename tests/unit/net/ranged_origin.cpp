// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/ranged_origin.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace weightfs::test {

namespace {

using Object = RangedOrigin::Object;

bool precondition_holds(const SeenRequest& request, const Object& object) {
  const auto match = request.header("if-match");
  if (match) return *match == object.etag;
  // Dates are compared as text: a test's objects differ or do not.
  const auto unmodified = request.header("if-unmodified-since");
  return !unmodified || *unmodified == object.last_modified;
}

std::string answer_for(const SeenRequest& request, const Object& object) {
  std::map<std::string, std::string> headers{{"Accept-Ranges", "bytes"}};
  if (!object.etag.empty()) headers["ETag"] = object.etag;
  if (!object.last_modified.empty()) headers["Last-Modified"] = object.last_modified;
  const std::string& content = object.content;
  if (request.method == "HEAD") {
    headers["Content-Length"] = std::to_string(content.size());
    return answer(200, headers, "");
  }
  if (!precondition_holds(request, object)) return answer(412, headers, "");
  const auto range = request.header("range");
  if (!range) return answer(200, headers, content);
  unsigned long first = 0;
  unsigned long last = 0;
  if (std::sscanf(range->c_str(), "bytes=%lu-%lu", &first, &last) != 2 || first > last ||
      first >= content.size()) {
    headers["Content-Range"] = "bytes */" + std::to_string(content.size());
    return answer(416, headers, "");
  }
  last = std::min(last, content.size() - 1);
  headers["Content-Range"] = "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
                             std::to_string(content.size());
  return answer(206, headers, content.substr(first, last - first + 1));
}

}  // namespace

RangedOrigin::RangedOrigin(Objects objects)
    : objects_(std::move(objects)),
      server_([this](const SeenRequest& request, ScriptedServer::Connection& connection) {
        handle(request, connection);
      }) {
}

void RangedOrigin::put(const std::string& target, Object object) {
  objects_.with([&](Objects& objects) { objects[target] = std::move(object); });
}

void RangedOrigin::set_fault(Fault fault) {
  fault_.with([&](Fault& current) { current = std::move(fault); });
}

std::size_t RangedOrigin::count(std::string_view method) const {
  const auto requests = server_.requests();
  return static_cast<std::size_t>(std::ranges::count(requests, method, &SeenRequest::method));
}

void RangedOrigin::handle(const SeenRequest& request, ScriptedServer::Connection& connection) {
  const Fault fault = fault_.with([](const Fault& current) { return current; });
  if (fault && fault(request, connection)) return;
  const std::optional<Object> object =
      objects_.with([&](const Objects& objects) -> std::optional<Object> {
        const auto found = objects.find(request.target);
        if (found == objects.end()) return std::nullopt;
        return found->second;
      });
  connection.send(object ? answer_for(request, *object) : answer(404, {}, "no such thing"));
}

}  // namespace weightfs::test
