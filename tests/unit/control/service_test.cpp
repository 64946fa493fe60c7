// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/service.hpp"

#include "base/error.hpp"
#include "running_service.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace weightfs;
using namespace weightfs::control;
using namespace weightfs::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const std::string kWeights(300'000, 'w');
const std::string kTokenizer(20'000, 't');

std::optional<Errc> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

/// A service that has "org/m" with two files; "org/twin" shares the tokenizer.
struct Bench : RunningService {
  Bench() {
    (void)source("m", "model.bin", kWeights);
    (void)source("twin", "tokenizer.json", kTokenizer);
    (void)service.add({"org/m", source("m", "tokenizer.json", kTokenizer)}, {});
    (void)service.add({"org/twin", source("twin", "other.bin", "only here")}, {});
    (void)mount.told();
  }
};

}  // namespace

TEST_CASE("add records what the source has, once, and fetches nothing") {
  RunningService running;
  const std::string source = running.source("m", "model.bin", kWeights);
  const api::Model added = running.service.add({"org/m", source + "/"}, {});
  CHECK(added.source == source);
  CHECK(added.file_count == 1);
  CHECK(added.bytes == kWeights.size());
  CHECK(added.resident_bytes == 0);
  CHECK_FALSE(added.complete);
  CHECK(running.service.add({"org/m", source}, {}) == added);
  CHECK(error_of([&] { (void)running.service.add({"org/m", source + "2"}, {}); }) == Errc::kBusy);
  CHECK(error_of([&] { (void)running.service.add({"a@b", source}, {}); }) == Errc::kInvalid);
  CHECK(error_of([&] { (void)running.service.add({"b", "nonsense"}, {}); }) == Errc::kInvalid);
  CHECK(error_of([&] { (void)running.service.add({"b", source + "/none"}, {}); }) ==
        Errc::kNotFound);
  CHECK(running.service.models().size() == 1);
}

TEST_CASE("a model that lacks a shard of its index is not added, and the shard is named") {
  RunningService running;
  const std::string source =
      running.source("m", "model.safetensors.index.json",
                     R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  (void)running.source("m", "model-1.safetensors", kWeights);
  try {
    (void)running.service.add({"org/m", source}, {});
    FAIL("added");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kInvalid);
    CHECK_THAT(error.what(), ContainsSubstring("model-2.safetensors"));
  }
  CHECK(running.service.models().empty());
  CHECK(running.mount.told().empty());
  (void)running.source("m", "model-2.safetensors", kWeights);
  CHECK(running.service.add({"org/m", source}, {}).file_count == 3);
}

TEST_CASE("warm fetches everything, and then every byte is verified and has its digest") {
  Bench bench;
  const api::Progress before = bench.service.progress("org/m");
  CHECK(before.verified == 0);
  CHECK_FALSE(before.complete);
  const api::Progress after = bench.fetch("org/m");
  CHECK_FALSE(after.error);
  CHECK(after.complete);
  CHECK(after.verified == kWeights.size() + kTokenizer.size());
  CHECK(after.files_complete == 2);
  const api::ModelDetail detail = bench.service.model("org/m");
  CHECK(detail.model.complete);
  CHECK_FALSE(detail.model.provisional);
  CHECK(detail.model.snapshot.size() == 64);
  CHECK(detail.files[0].sha256 == Digest::of(kWeights).hex());
  CHECK(detail.files[1].complete);
  CHECK(bench.service.warm("org/m").complete);
  CHECK_FALSE(bench.service.warm("org/m").running);
}

TEST_CASE("where nothing is kept, warm says so and pin does not fail") {
  RunningService running(fetch::Keep::kMemoryOnly);
  (void)running.service.add({"m", running.source("m", "model.bin", kWeights)}, {});
  CHECK(error_of([&] { (void)running.service.warm("m"); }) == Errc::kUnsupported);
  CHECK(running.service.pin("m", {}).pinned);
  CHECK(running.service.status().store.error.empty());
  for (const char* path : {"m", "m/model.bin"}) {
    CAPTURE(path);
    CHECK_THAT(running.service.why(path).next_step, ContainsSubstring("Nothing is kept here"));
  }
}

TEST_CASE("a store that could not be opened is the reason why nothing is kept") {
  RunningService running(fetch::Keep::kStore, RunningService::Disk::kUnopenable);
  (void)running.service.add({"m", running.source("m", "model.bin", kWeights)}, {});
  CHECK_THROWS_WITH(running.service.warm("m"), ContainsSubstring("could not be opened") &&
                                                   ContainsSubstring("create /sys/weightfs"));
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { (void)running.service.verify("", {}); },
           [&] { (void)running.service.verify("m", {}); },
           [&] { (void)running.service.evict("m", Shared::kKeep, DryRun::kNo); }}) {
    CHECK_THROWS_WITH(call(), ContainsSubstring("could not be opened"));
  }
  CHECK(running.service.pin("m", {}).pinned);
  CHECK_THAT(running.service.status().store.error,
             ContainsSubstring("the store /sys/weightfs could not be opened: "));
}

TEST_CASE("the query of a source is not shown") {
  Bench bench;
  const std::string url = "http://127.0.0.1:1/file?key=s3cret";
  bench.catalog.add("org/signed", url,
                    std::make_shared<const snapshot::Snapshot>(
                        url, "1", std::vector<snapshot::File>{{.path = "file", .size = 5}}));
  CHECK(bench.service.model("org/signed").model.source == "http://127.0.0.1:1/file?...");
  const api::Why why = bench.service.why("org/signed/file");
  CHECK(why.source == "http://127.0.0.1:1/file?...");
  CHECK_THAT(why.sentence, !ContainsSubstring("s3cret"));
  CHECK_THROWS_WITH(bench.service.add({"org/signed", "file:///other"}, {}),
                    ContainsSubstring("file?...") && !ContainsSubstring("s3cret"));
}

TEST_CASE("a name that is not in the catalog is not found, whatever is asked of it") {
  RunningService running;
  Service& service = running.service;
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { (void)service.model("x"); }, [&] { (void)service.progress("x"); },
           [&] { (void)service.update("x", {.staging = Staging::kWarm}, {}); },
           [&] { (void)service.verify("x", {}); }, [&] { (void)service.remove("x", DryRun::kNo); },
           [&] { (void)service.evict("x", Shared::kKeep, DryRun::kNo); },
           [&] { (void)service.warm("x"); }, [&] { (void)service.pin("x", {}); },
           [&] { (void)service.unpin("x"); }}) {
    CHECK(error_of(call) == Errc::kNotFound);
  }
}

TEST_CASE("update without news changes nothing") {
  Bench bench;
  const api::UpdateResult result = bench.service.update("org/m", {.staging = Staging::kWarm}, {});
  CHECK_FALSE(result.changed);
  CHECK(result.from == result.to);
  CHECK(bench.mount.told().empty());
}

TEST_CASE("update fetches what is new before the name shows it, and keeps the old revision") {
  Bench bench;
  const api::Model old = bench.service.model("org/m").model;
  const std::string fresh(400'000, 'n');
  (void)bench.source("m", "model.bin", fresh);
  std::vector<std::string> stages;
  const Job job{.stop = {}, .report = [&](const api::JobProgress& progress) {
                  if (stages.empty() || stages.back() != progress.stage) {
                    stages.push_back(progress.stage);
                  }
                  CHECK(bench.service.model("org/m").model.key == old.key);
                }};
  const api::UpdateResult result = bench.service.update("org/m", {.staging = Staging::kWarm}, job);
  CHECK(result.changed);
  CHECK(result.from == old.revision);
  CHECK(stages == std::vector<std::string>{"resolving", "fetching"});
  const api::Model now = bench.service.model("org/m").model;
  CHECK(now.complete);
  CHECK_FALSE(now.provisional);
  CHECK(now.revisions == 2);
  CHECK(now.bytes == fresh.size() + kTokenizer.size());
  CHECK(bench.catalog.revision("org/m", old.revision));
}

TEST_CASE("a cold update flips at once") {
  Bench bench;
  (void)bench.source("m", "model.bin", "new");
  CHECK(bench.service.update("org/m", {.staging = Staging::kCold}, {}).changed);
  CHECK_FALSE(bench.service.model("org/m").model.complete);
}

TEST_CASE("an update whose new revision cannot be had leaves the name where it was") {
  Bench bench;
  const std::string key = bench.service.model("org/m").model.key;
  (void)bench.source("m", "model.bin", "new");
  (void)bench.source("m", "x.safetensors.index.json", R"({"weight_map":{"a":"none.safetensors"}})");
  CHECK(error_of([&] { (void)bench.service.update("org/m", {.staging = Staging::kWarm}, {}); }) ==
        Errc::kInvalid);
  CHECK(bench.service.model("org/m").model.key == key);
}

TEST_CASE("evict gives back the bytes, keeps the name, and leaves what another model shares") {
  Bench bench;
  REQUIRE(bench.fetch("org/m").complete);
  REQUIRE(bench.fetch("org/twin").complete);

  const api::Freed dry = bench.service.evict("org/m", Shared::kKeep, DryRun::kYes);
  CHECK(dry.dry_run);
  CHECK(dry.blobs == 1);
  CHECK(dry.bytes == kWeights.size());
  CHECK(dry.shared_blobs == 1);
  CHECK(fs::exists(bench.blob(kWeights)));
  CHECK(bench.mount.told().empty());

  const api::Freed freed = bench.service.evict("org/m", Shared::kKeep, DryRun::kNo);
  CHECK(freed.blobs == 1);
  CHECK(freed.bytes == kWeights.size());
  CHECK_FALSE(fs::exists(bench.blob(kWeights)));
  CHECK(fs::exists(bench.blob(kTokenizer)));
  CHECK(bench.mount.told() == std::vector<std::string>{"gone " + Digest::of(kWeights).short_hex()});
  CHECK(freed.shared_blobs == 1);
  CHECK(freed.shared_bytes == kTokenizer.size());
  CHECK(bench.service.model("org/m").model.resident_bytes == kTokenizer.size());
  CHECK(bench.service.model("org/twin").model.complete);

  (void)bench.service.pin("org/twin", {.reason = "production", .owner = "", .until = ""});
  CHECK(error_of([&] { (void)bench.service.evict("org/twin", Shared::kKeep, DryRun::kNo); }) ==
        Errc::kBusy);
  CHECK(error_of([&] { (void)bench.service.remove("org/twin", DryRun::kNo); }) == Errc::kBusy);
  CHECK(bench.fetch("org/m").complete);
}

TEST_CASE("a pin is shown with its reason, its owner and its end") {
  Bench bench;
  const api::Model pinned = bench.service.pin(
      "org/m", {.reason = "launch", .owner = "ada", .until = "2100-01-01T00:00:00Z"});
  CHECK(pinned.pinned);
  CHECK(pinned.pin_reason == "launch");
  CHECK(pinned.pin_owner == "ada");
  CHECK(pinned.pin_until == 4'102'444'800);
  const auto refuse = [&](const std::string& until, const std::string& reason) {
    return error_of([&] {
      (void)bench.service.pin("org/twin", {.reason = reason, .owner = "", .until = until});
    });
  };
  CHECK(refuse("2001-01-01", "") == Errc::kInvalid);
  CHECK(refuse("soon", "") == Errc::kInvalid);
  CHECK(refuse("", "\xff") == Errc::kInvalid);
  CHECK_FALSE(bench.service.model("org/twin").model.pinned);
}

TEST_CASE(
    "evict takes what others share only where that is asked for, and never from a pinned one") {
  Bench bench;
  REQUIRE(bench.fetch("org/m").complete);
  REQUIRE(bench.fetch("org/twin").complete);
  (void)bench.service.pin("org/twin", {});
  CHECK(bench.service.evict("org/m", Shared::kEvict, DryRun::kNo).shared_blobs == 1);
  CHECK(fs::exists(bench.blob(kTokenizer)));

  (void)bench.service.unpin("org/twin");
  CHECK(bench.service.evict("org/m", Shared::kKeep, DryRun::kNo).shared_blobs == 1);
  CHECK(fs::exists(bench.blob(kTokenizer)));
  const api::Freed freed = bench.service.evict("org/m", Shared::kEvict, DryRun::kNo);
  CHECK(freed.bytes == kTokenizer.size());
  CHECK(freed.shared_blobs == 0);
  CHECK_FALSE(fs::exists(bench.blob(kTokenizer)));
}

TEST_CASE("evict leaves what only an old revision of another model has") {
  Bench bench;
  REQUIRE(bench.fetch("org/m").complete);
  REQUIRE(bench.fetch("org/twin").complete);
  (void)bench.source("twin", "tokenizer.json", "another");
  (void)bench.service.update("org/twin", {.staging = Staging::kCold}, {});
  CHECK(bench.service.evict("org/m", Shared::kKeep, DryRun::kNo).shared_blobs == 1);
  CHECK(fs::exists(bench.blob(kTokenizer)));
}

TEST_CASE("what was fetched of a file is thrown away once its last reader has gone") {
  Bench bench;
  std::promise<void> answered;
  fetch::FillPtr fill = bench.open("org/m", "model.bin");
  fill->read(0, 1, [&](const fetch::ReadResult& result) {
    CHECK_FALSE(result.error);
    answered.set_value();
  });
  REQUIRE(answered.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready);
  (void)bench.service.evict("org/m", Shared::kKeep, DryRun::kNo);
  CHECK(fill->progress().state != fetch::FillState::kFailed);  // its reader goes on

  fill.reset();
  (void)bench.service.remove("org/m", DryRun::kNo);
  CHECK_FALSE(bench.has_partial_blobs());
  CHECK_FALSE(fs::exists(bench.blob(kWeights)));
}

TEST_CASE("remove takes the name and the bytes that nobody else has") {
  Bench bench;
  REQUIRE(bench.fetch("org/m").complete);
  REQUIRE(bench.fetch("org/twin").complete);
  CHECK(bench.service.remove("org/m", DryRun::kYes).bytes == kWeights.size());
  CHECK(bench.service.models().size() == 2);

  const api::Freed freed = bench.service.remove("org/m", DryRun::kNo);
  CHECK(freed.blobs == 1);
  CHECK(freed.shared_bytes == kTokenizer.size());
  CHECK_FALSE(fs::exists(bench.blob(kWeights)));
  CHECK(fs::exists(bench.blob(kTokenizer)));
  CHECK(bench.service.models().size() == 1);
  CHECK(bench.service.model("org/twin").model.complete);
  CHECK(bench.mount.told() == std::vector<std::string>{"gone " + Digest::of(kWeights).short_hex()});
}

TEST_CASE("verify finds a blob that changed on disk and takes it away") {
  Bench bench;
  REQUIRE(bench.fetch("org/m").complete);
  const api::VerifyResult good = bench.service.verify("", {});
  CHECK(good.blobs == 2);
  CHECK(good.bytes == kWeights.size() + kTokenizer.size());
  CHECK(good.corrupt.empty());

  fs::permissions(bench.blob(kWeights), fs::perms::owner_write, fs::perm_options::add);
  write_at(open_file(bench.blob(kWeights), O_WRONLY), 1000, std::as_bytes(std::span("bad", 3)));
  const api::VerifyResult bad = bench.service.verify("org/m", {});
  REQUIRE(bad.corrupt.size() == 1);
  CHECK(bad.corrupt[0].sha256 == Digest::of(kWeights).hex());
  CHECK(bad.corrupt[0].files == std::vector<std::string>{"org/m/model.bin"});
  CHECK_FALSE(bench.service.model("org/m").model.complete);
  CHECK(bench.service.status().store.quarantined > 0);
  CHECK(bench.fetch("org/m").complete);
}

TEST_CASE("verify stops when the daemon does") {
  Bench bench;
  REQUIRE(bench.fetch("org/m").complete);
  std::stop_source stop;
  stop.request_stop();
  CHECK(error_of([&] { (void)bench.service.verify("", {.stop = stop.get_token()}); }) ==
        Errc::kCancelled);
}

TEST_CASE("status puts the layers' counters together") {
  Bench bench;
  REQUIRE(bench.fetch("org/m").complete);
  const api::Status status = bench.service.status();
  CHECK(status.pid == ::getpid());
  CHECK(status.keeper_pid == 42);
  CHECK(status.missing_models == bench.mount.missing_models());
  CHECK(status.mount == "/models");
  CHECK(status.mode == "prod");
  CHECK_FALSE(status.passthrough.active);
  CHECK(status.store.blobs == 2);
  CHECK(status.store.bytes == kWeights.size() + kTokenizer.size());
  CHECK(status.store.capacity > 0);
  CHECK(status.cache.hits == 2);
  CHECK(status.fuse.opens == 3);
  CHECK(status.models == 2);
  CHECK(status.fills.empty());
}

TEST_CASE(
    "a fill names every file that waits for its bytes, and why names the one that was asked "
    "about") {
  Bench bench;
  const api::Model first = bench.service.model("org/m").model;
  (void)bench.service.add({"org/again", first.source}, {});
  const fetch::FillPtr fill = bench.open("org/m", "model.bin");
  const std::vector<api::FillStatus> fills = bench.service.fills();
  REQUIRE(fills.size() == 1);
  CHECK(fills[0].name == "org/again");  // either has the snapshot
  CHECK(fills[0].path == "model.bin");
  CHECK(fills[0].also == std::vector<std::string>{"org/m/model.bin"});
  const api::Why why = bench.service.why("org/m/model.bin");
  REQUIRE(why.fill);
  CHECK(why.fill->name == "org/m");
  CHECK(why.fill->also == std::vector<std::string>{"org/again/model.bin"});
}

TEST_CASE("why tells each state of a path apart") {
  Bench bench;
  const auto state = [&](const std::string& path) { return bench.service.why(path).state; };
  const api::Why cold = bench.service.why("/models/org/m/model.bin");
  CHECK(cold.state == "not_fetched");
  CHECK(cold.name == "org/m");
  CHECK(cold.file == "model.bin");
  CHECK_THAT(cold.next_step, ContainsSubstring("weightfs warm org/m"));
  CHECK(state("org/m/model.bin") == "not_fetched");
  REQUIRE(bench.fetch("org/m").complete);
  const api::Why warm = bench.service.why("/models/org/m/model.bin");
  CHECK(warm.state == "complete");
  CHECK(warm.sha256 == Digest::of(kWeights).hex());
  CHECK(state("/models") == "directory");
  CHECK(state("/models/org") == "directory");
  CHECK_THAT(bench.service.why("/models/org").sentence, ContainsSubstring("weightfs ls"));
  CHECK(state("/models/org/m") == "directory");
  for (const char* slashed : {"/models/", "/models/org/", "/models/org/m/", "org/m/"}) {
    CAPTURE(slashed);
    CHECK(state(slashed) == "directory");
  }
  CHECK(state("/models/org/m/none") == "absent");
  CHECK(state("/models/none") == "absent");
  CHECK(error_of([&] { (void)bench.service.why("/elsewhere"); }) == Errc::kNotFound);
}

TEST_CASE("why knows the directories of revisions and of snapshots") {
  RunningService service_of;
  control::Service& service = service_of.service;
  (void)service_of.source("m", "deep/er/model.bin", kWeights);
  (void)service.add({"org/m", service_of.source("m", "deep/config.json", "{}")}, {});
  REQUIRE(service_of.fetch("org/m").complete);
  const api::Model old = service.model("org/m").model;
  (void)service_of.source("m", "deep/config.json", "{1}");
  (void)service.update("org/m", {.staging = Staging::kCold}, {});
  const api::Model now = service.model("org/m").model;
  REQUIRE(now.key != old.key);

  const std::string revision = "org/m@" + old.revision;
  const std::string snapshot = ".snapshots/" + old.snapshot;
  REQUIRE(!old.snapshot.empty());
  for (const std::string& path :
       {revision, revision + "/", revision + "/deep", revision + "/deep/er/", snapshot,
        snapshot + "/", snapshot + "/deep/er"}) {
    CAPTURE(path);
    const api::Why why = service.why(path);
    CHECK(why.state == "directory");
    CHECK(why.name == "org/m");
    CHECK(why.revision == old.revision);
    CHECK(why.resident_bytes == why.size);
    CHECK_THAT(why.sentence, ContainsSubstring("complete"));
  }
  CHECK(service.why(".snapshots").state == "directory");
  CHECK(service.why(".snapshots/").state == "directory");
  CHECK(service.why(snapshot + "/deep/config.json").state == "complete");

  // A directory has its own size, not that of the model.
  CHECK(service.why("org/m/deep/er").size == kWeights.size());
  CHECK(service.why("org/m/deep/er/").file == "deep/er");
  const api::Why part = service.why("org/m/deep");
  CHECK(part.size == kWeights.size() + 3);
  CHECK_THAT(part.next_step, ContainsSubstring("weightfs warm org/m"));

  // What warm fetches is the current revision.
  (void)service_of.source("m", "deep/config.json", "{12}");
  (void)service.update("org/m", {.staging = Staging::kCold}, {});
  const std::string middle = "org/m@" + now.revision + "/deep/config.json";
  CHECK(service.why(middle).state == "not_fetched");
  CHECK_THAT(service.why(middle).next_step, ContainsSubstring("not the current revision"));

  CHECK_THAT(service.why("org/m@none/deep").sentence, ContainsSubstring("no revision none"));
  CHECK_THAT(service.why(revision + "/none").sentence, ContainsSubstring("no such file"));
  CHECK_THAT(service.why(".snapshots/" + std::string(64, '0')).sentence, ContainsSubstring("id"));
  for (const std::string& path : {std::string("org/m@none"), std::string(".snapshots/none"),
                                  snapshot + "/none/", std::string("org/m/deep/none/x")}) {
    CAPTURE(path);
    CHECK(service.why(path).state == "absent");
  }
}
