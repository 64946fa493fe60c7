// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/pinned_reference.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>

using namespace weightfs;
using namespace weightfs::snapshot;

namespace {

const std::string kRevision(64, 'a');

}  // namespace

TEST_CASE("a whole digest after the last '@' is the revision of a reference") {
  for (const char* source :
       {"file:///data/m", "https://host/m/", "https://host/@scope/m/", "https://host/m/?a=b@c"}) {
    CAPTURE(source);
    const auto pinned = PinnedReference::parse(std::string(source) + "@" + kRevision);
    CHECK(pinned.source.text() == source);
    CHECK(pinned.revision == Digest::parse(kRevision));
    CHECK(pinned.text() == std::string(source) + "@" + kRevision);
    CHECK_FALSE(PinnedReference::parse(source).revision);
    CHECK(PinnedReference::parse(source).text() == source);
  }
  CHECK(PinnedReference::parse("file:///data/m/@" + kRevision).text() ==
        "file:///data/m@" + kRevision);
}

TEST_CASE("an '@' before anything else belongs to the path") {
  for (const std::string text : {"file:///data/m@v1", "file:///data/m@", "https://host/m/@main"}) {
    CAPTURE(text);
    const auto pinned = PinnedReference::parse(text);
    CHECK_FALSE(pinned.revision);
    CHECK(pinned.text() == text);
  }
  CHECK_THROWS_AS(PinnedReference::parse("@" + kRevision), Error);
}

TEST_CASE("a snapshot is asked for by its id, or by its key before it has one") {
  const Snapshot complete("https://host/m/?signature=x", "",
                          {{.path = "a", .size = 1, .sha256 = Digest::of("a")}});
  CHECK(shown_reference(complete) == "https://host/m/?...@" + complete.id()->hex());
  const Snapshot provisional("file:///m", "", {{.path = "a", .size = 1, .validator = "v"}});
  CHECK(shown_reference(provisional) == "file:///m@" + provisional.key().hex());
  CHECK(shown_reference(provisional.with_digest(0, Digest::of("a"))) ==
        "file:///m@" + provisional.with_digest(0, Digest::of("a")).id()->hex());
}
