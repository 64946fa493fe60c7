// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fuse/session_records.hpp"

#include "base/error.hpp"
#include "digest/digest.hpp"
#include "keeper/session_memory.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <string>

using namespace weightfs;
using fuse::SessionRecords;
using keeper::SessionMemory;

TEST_CASE("a successor knows the configuration that was remembered last, and other records") {
  const Fd descriptor = SessionMemory::create();
  SessionMemory memory(descriptor);
  CHECK(!SessionRecords::configuration(memory));
  {
    SessionRecords records(memory);
    records.append("tree v one");
    for (const char* text : {"{}", "{\"connections\": 8}", "{\"connections\": 8}", ""}) {
      records.remember_configuration(text);
      CHECK(SessionRecords::configuration(memory) == text);
    }
    CHECK(records.records().size() == 4);  // the same again is not written
  }
  // Of configurations the log keeps the last.
  SessionMemory next(descriptor);
  SessionRecords records(next);
  CHECK(SessionRecords::configuration(next) == "");
  CHECK(records.records().size() == 2);
  CHECK(std::ranges::count(records.records(), "tree v one") == 1);
  CHECK_THROWS_AS(records.remember_configuration(std::string(SessionMemory::kMaxRecord, 'x')),
                  Error);
  CHECK(SessionRecords::configuration(next) == "");
}
