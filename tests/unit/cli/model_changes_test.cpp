// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/model_changes.hpp"

#include <catch2/catch_test_macros.hpp>

#include <set>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::cli;
using Kind = ModelChange::Kind;

namespace {

catalog::Model model(const std::string& name, const std::string& source) {
  catalog::Model made;
  made.name = name;
  made.source = source;
  made.current = Digest::of(name);
  made.declared = true;
  return made;
}

ModelSetting setting(const std::string& name, const std::string& source) {
  return {.name = name, .source = source, .origin = "the file", .declared = true};
}

}  // namespace

TEST_CASE("what goes comes first, and what is right stays as it is") {
  CHECK(changes({model("org/gone", "file:///a"), model("org/same", "file:///b")},
                {setting("org/new", "file:///c"), setting("org/same", "file:///b")}) ==
        std::vector<ModelChange>{{.kind = Kind::kRemove, .name = "org/gone"},
                                 {.kind = Kind::kAdd, .name = "org/new", .source = "file:///c"}});
}

TEST_CASE("a source that is written otherwise is the same one") {
  CHECK(changes({model("org/m", "https://host/a")}, {setting("org/m", "HTTPS://Host/a")}).empty());
}

TEST_CASE("models of people stay, and become the configuration's when it names them") {
  catalog::Model by_hand = model("org/m", "file:///a");
  by_hand.declared = false;
  CHECK(changes({by_hand}, {}).empty());
  CHECK(changes({by_hand}, {setting("org/m", "file:///a")}) ==
        std::vector<ModelChange>{{.kind = Kind::kAdopt, .name = "org/m"}});
  ModelSetting of_a_flag = setting("org/m", "file:///other");
  of_a_flag.declared = false;
  CHECK(changes({by_hand}, {of_a_flag}).empty());
  CHECK(changes({}, {of_a_flag}).size() == 1);
}

TEST_CASE("another source, a pin and a confirmation are made what the configuration says") {
  catalog::Model there = model("org/m", "file:///a");
  there.confirmed = Digest::of("an older one");
  ModelSetting wanted = setting("org/m", "file:///b");
  wanted.pin = wanted.confirm = true;
  CHECK(changes({there}, {wanted}) ==
        std::vector<ModelChange>{{.kind = Kind::kResource, .name = "org/m", .source = "file:///b"},
                                 {.kind = Kind::kPin, .name = "org/m"},
                                 {.kind = Kind::kConfirm, .name = "org/m"}});
  there.source = wanted.source;
  there.confirmed = there.current;
  there.pin.emplace();
  CHECK(changes({there}, {wanted}).empty());
}

TEST_CASE("only a pin of the configuration's own is taken away by it") {
  catalog::Model there = model("org/m", "file:///a");
  there.pin = {.reason = "a person's", .owner = "", .until = 0};
  CHECK(changes({there}, {setting("org/m", "file:///a")}).empty());
  there.pin->reason = kDeclaredPin;
  CHECK(changes({there}, {setting("org/m", "file:///a")}) ==
        std::vector<ModelChange>{{.kind = Kind::kUnpin, .name = "org/m"}});
}

TEST_CASE("every change has a word") {
  std::set<std::string_view> words;
  for (const Kind kind : {Kind::kAdd, Kind::kAdopt, Kind::kResource, Kind::kRemove, Kind::kPin,
                          Kind::kUnpin, Kind::kConfirm}) {
    words.insert(word(kind));
  }
  CHECK(words.size() == 7);
}
