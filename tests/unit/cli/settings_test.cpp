// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/settings.hpp"

#include "../control/temporary_directory.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/config_file.hpp"
#include "cli/setting_table.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>

using namespace std::chrono_literals;
using namespace weightfs;
using namespace weightfs::cli;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Sources with a configuration file of this text, and nothing of this machine's.
class Sources {
 public:
  explicit Sources(const std::string& config = "{}") {
    write_file_durably(path(), config);
    value.config = path();
    value.processors = 6;
  }
  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "config.json"; }
  SettingSources value;

 private:
  tests::TemporaryDirectory directory_;
};

const EffectiveSetting& effective(const LoadedSettings& loaded, std::string_view name) {
  return *std::ranges::find(loaded.effective, name, &EffectiveSetting::name);
}

std::string refusal(const SettingSources& sources) {
  try {
    (void)load_settings(sources);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kInvalid);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("settings without any source are the documented defaults") {
  const Sources sources;
  const LoadedSettings loaded = load_settings(sources.value);
  const Settings& s = loaded.settings;
  CHECK(s.stores == std::vector<std::filesystem::path>{"/var/lib/weightfs/store"});
  CHECK(s.state == "/var/lib/weightfs/store-state");
  CHECK(s.socket == "/run/weightfs/control.sock");
  CHECK(s.user.empty());
  CHECK(s.mode == Mode::kProd);
  CHECK(s.admission == Admission::kSecondReference);
  CHECK(s.limits.capacity == Share{.percent = 90});
  CHECK(s.limits.min_free == Share{.percent = 5});
  CHECK(s.limits.probation == Share{.percent = 20});
  CHECK(s.verify == fetch::Verify::kStream);
  CHECK(s.verify_open == vfs::CheckPolicy::kBoot);
  CHECK(s.passthrough);
  CHECK(s.connections == 64);
  CHECK(s.connections_per_blob == 16);
  CHECK(s.part_size == 8ULL << 20);
  CHECK(s.fill_bandwidth == 0);
  CHECK(s.write_bandwidth == 0);
  CHECK(s.yield_to_readers);
  CHECK(s.deadline == 120s);
  CHECK(s.stall_timeout == 30s);
  CHECK(s.read_ahead == 4ULL << 20);
  CHECK(s.hash_threads == 3);
  CHECK(s.fuse_threads == 6);
  CHECK_FALSE(s.allow_network_store);
  CHECK(s.log_level == LogLevel::kInfo);
  CHECK(s.ca_bundle.empty());
  CHECK(s.models.empty());
  CHECK(loaded.effective.size() == setting_table().size());
  for (const EffectiveSetting& setting : loaded.effective) CHECK(setting.origin == "default");
}

TEST_CASE("flag wins over environment over file over default, and each value knows its origin") {
  Sources sources(R"({
    // comments are allowed
    "store": "/file", "connections": 7, "passthrough": false, /* here too */ "part_size": 1048576
  })");
  sources.value.environment = {{"WEIGHTFS_STORE", "/env"},
                               {"WEIGHTFS_DEADLINE", "5m"},
                               {"WEIGHTFS_MODE", ""},
                               {"WEIGHTFS_VERIFY", "strict"}};
  sources.value.flags = {{"store", "/flag"}, {"verify", "stream"}};
  const LoadedSettings loaded = load_settings(sources.value);
  CHECK(loaded.settings.stores == std::vector<std::filesystem::path>{"/flag"});
  CHECK(loaded.settings.state == "/flag-state");
  CHECK(loaded.settings.deadline == 5min);
  CHECK(loaded.settings.connections == 7);
  CHECK(loaded.settings.part_size == 1U << 20);
  CHECK_FALSE(loaded.settings.passthrough);
  CHECK(loaded.settings.verify == fetch::Verify::kStream);
  CHECK(effective(loaded, "store").origin == "flag --store");
  CHECK(effective(loaded, "deadline").origin == "environment WEIGHTFS_DEADLINE");
  CHECK(effective(loaded, "deadline").value == "5m");
  CHECK(effective(loaded, "connections").origin == "file " + sources.path().string());
  CHECK(effective(loaded, "part_size").value == "1MiB");
  CHECK(effective(loaded, "mode").origin == "default");
}

TEST_CASE("a bandwidth is bytes per second, or none") {
  const LoadedSettings loaded =
      load_settings(Sources(R"({"fill_bandwidth": "500MB", "write_bandwidth": "1GiB/s"})").value);
  CHECK(loaded.settings.fill_bandwidth == 500'000'000);
  CHECK(loaded.settings.write_bandwidth == 1ULL << 30);
  CHECK(effective(loaded, "fill_bandwidth").value == "500MB/s");
  CHECK(effective(loaded, "write_bandwidth").value == "1GiB/s");
  const LoadedSettings none =
      load_settings(Sources(R"({"fill_bandwidth": 0, "write_bandwidth": "unlimited"})").value);
  CHECK(none.settings.fill_bandwidth == 0);
  CHECK(effective(none, "fill_bandwidth").value == "unlimited");
  CHECK(effective(none, "write_bandwidth").value == "unlimited");
}

TEST_CASE("every setting shows what it reads") {
  for (const Setting& setting : setting_table()) {
    CAPTURE(setting.name);
    Settings settings;
    setting.apply(settings, std::string(setting.default_text));
    const std::string shown = setting.show(settings);
    if (setting.default_text.empty()) {
      CHECK(shown.empty());
      continue;
    }
    Settings again;
    setting.apply(again, shown);
    CHECK(setting.show(again) == shown);
  }
}

TEST_CASE("names of flags and variables follow from the key") {
  CHECK(flag(*find_setting("part_size")) == "--part-size");
  CHECK(flag(*find_setting("passthrough")) == "--no-passthrough");
  CHECK(flag_value(*find_setting("passthrough")) == "false");
  CHECK(flag_value(*find_setting("allow_network_store")) == "true");
  CHECK(environment_variable(*find_setting("ca_bundle")) == "WEIGHTFS_CA_BUNDLE");
  CHECK(find_setting("nonsense") == nullptr);
}

TEST_CASE("an unknown key is refused with the nearest known one") {
  CHECK_THAT(refusal(Sources(R"({"conections": 3})").value),
             ContainsSubstring(R"(unknown key "conections"; did you mean "connections"?)"));
  CHECK_THAT(refusal(Sources(R"({"zzz": 3})").value), ContainsSubstring(R"(unknown key "zzz")"));
  CHECK_THAT(refusal(Sources(R"({"models": [{"nmae": "a", "source": "b"}]})").value),
             ContainsSubstring(R"(models[0]: unknown key "nmae"; did you mean "name"?)"));
}

TEST_CASE("a mistake in the syntax of the file is found without repeating what stands there") {
  const Sources sources(R"({"models": [{"name": "a/b", "source": "https://host/f?sig=SECRET)");
  const std::string said = refusal(sources.value);
  CHECK(said.find("line 1, column") != std::string::npos);
  CHECK(said.find("SECRET") == std::string::npos);
}

TEST_CASE("the store can be several directories") {
  const std::vector<std::filesystem::path> both{"/a", "/b/c"};
  for (const char* config : {R"({"store": ["/a", "/b/c/"]})", R"({"store": "/a:/b/c"})"}) {
    const LoadedSettings loaded = load_settings(Sources(config).value);
    CHECK(loaded.settings.stores == both);
    CHECK(loaded.settings.state == "/a-state");
    CHECK(effective(loaded, "store").value == "/a:/b/c");
  }
}

TEST_CASE("a bad value is refused where it stands") {
  for (const char* config :
       {R"({"store": 5})",
        R"({"store": "relative"})",
        R"({"connections": 0})",
        R"({"connections": -1})",
        R"({"connections": 1.5})",
        R"({"connections": "64"})",
        R"({"passthrough": "yes"})",
        R"({"part_size": "8"})",
        R"({"part_size": "2TB"})",
        R"({"fill_bandwidth": "fast"})",
        R"({"fill_bandwidth": "500MB/h"})",
        R"({"fill_bandwidth": 1000})",
        R"({"write_bandwidth": "10kB/s"})",
        R"({"deadline": "30"})",
        R"({"deadline": "1ms"})",
        R"({"mode": "production"})",
        R"({"models": {}})",
        R"({"models": [1]})",
        R"({"models": [{"name": "a"}]})",
        R"({"models": [{"name": "a", "source": ["b", 1]}]})",
        R"({"models": [{"name": "a", "source": ["file:///b", "nowhere"]}]})",
        R"({"models": [{"name": "a", "source": "file:///b", "parts": {"x": "file:///c"}}]})",
        R"({"models": [{"name": "a", "parts": {"x": "file:///c"}, "allow": ["*"]}]})",
        R"({"models": [{"name": 1, "source": "b"}]})",
        R"({"models": [{"name": "a", "source": "b"}, {"name": "a", "source": "c"}]})",
        R"({"store": "/a", "state": "/a/b"})",
        R"({"store": "/a/b", "state": "/a"})",
        R"({"store": []})",
        R"({"store": ["/a", 5]})",
        R"({"store": ["/a", "b"]})",
        R"({"store": ["/a:/b"]})",
        R"({"store": "/a:"})",
        R"({"store": "/a:/b:/a"})",
        R"({"store": ["/a", "/b", "/b/c"]})",
        R"({"store": ["/a", "/b"], "state": "/b/state"})",
        R"([])",
        R"({)",
        "",
        "\xff"}) {
    CAPTURE(config);
    CHECK(refusal(Sources(config).value) != "accepted");
  }
  Sources sources;
  sources.value.environment = {{"WEIGHTFS_MODE", "fast"}};
  CHECK(refusal(sources.value) ==
        "environment WEIGHTFS_MODE: mode: 'fast' is none of prod, off, shadow");
}

TEST_CASE("strict verification is refused where nothing is kept") {
  Sources sources(R"({"verify": "strict"})");
  CHECK(load_settings(sources.value).settings.keeps());
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"mode", "off"}, {"mode", "shadow"}, {"admission", "never"}}) {
    CAPTURE(key, value);
    sources.value.flags = {{key, value}};
    const std::string text = refusal(sources.value);
    CHECK_THAT(text, ContainsSubstring("verify strict (file "));
    CHECK_THAT(text, ContainsSubstring(key + " " + value + " (flag --" + key + ")"));
    sources.value.flags["verify"] = "stream";
    CHECK(refusal(sources.value) == "accepted");
  }
}

TEST_CASE("models of all places are the models, and the higher place wins a name") {
  Sources sources(R"({"models": [{"name": "a", "source": "file:///file"},
                                  {"name": "b", "source": "file:///file"}]})");
  sources.value.environment = {{"WEIGHTFS_MODELS", " b=file:///env\n c=file:///env "}};
  sources.value.model_flags = {"c=https://h/?q=1", "d=file:///flag"};
  const auto models = load_settings(sources.value).settings.models;
  REQUIRE(models.size() == 4);
  CHECK(models[0] == ModelSetting{"c", "https://h/?q=1", "flag --model"});
  CHECK(models[1].name == "d");
  CHECK(models[2] == ModelSetting{"b", "file:///env", "environment WEIGHTFS_MODELS"});
  CHECK(models[3].name == "a");
  CHECK_THAT(models[3].origin, ContainsSubstring("config.json"));

  sources.value.model_flags = {"nothing"};
  CHECK_THAT(refusal(sources.value), ContainsSubstring("'nothing' is not NAME=SOURCE"));
  sources.value.model_flags = {"x=file:///1", "x=file:///2"};
  CHECK_THAT(refusal(sources.value), ContainsSubstring("named twice"));
}

TEST_CASE("a configuration file that somebody named must exist, the default one need not") {
  const tests::TemporaryDirectory directory;
  SettingSources sources;
  sources.config = directory.path() / "none.json";
  CHECK_THROWS_AS(load_settings(sources), Error);
  sources.config.reset();
  sources.environment = {{"WEIGHTFS_CONFIG", (directory.path() / "none.json").string()}};
  CHECK_THROWS_AS(load_settings(sources), Error);
}

TEST_CASE("one setting alone is not stopped by mistakes in others") {
  Sources sources(R"({"socket": "/run/other.sock", "conections": 3})");
  CHECK(load_setting("socket", sources.value).value == "/run/other.sock");
  sources.value.environment = {{"WEIGHTFS_SOCKET", "/run/env.sock"}};
  CHECK(load_setting("socket", sources.value).value == "/run/env.sock");
  sources.value.flags = {{"socket", "/run/flag.sock"}};
  const EffectiveSetting setting = load_setting("socket", sources.value);
  CHECK(setting.value == "/run/flag.sock");
  CHECK(setting.origin == "flag --socket");
}

TEST_CASE("a model of the configuration may have several sources, patterns, or parts") {
  const auto source = [](const std::string& entry) {
    return load_settings(Sources(R"({"models": [{"name": "a", )" + entry + "}]}").value)
        .settings.models.at(0)
        .source;
  };
  CHECK(source(R"("source": ["hf://org/a", "https://h/a/"], "allow": "*.json", "ignore": ["x"])") ==
        "release://base=hf://org/a&base|=https://h/a/&base+=*.json&base-=x");
  CHECK(source(R"("parts": {"base": "file:///b", "t": "file:///t"}, "overlays": ["t"])") ==
        "release://base=file:///b&t!=file:///t");
  CHECK(source(R"("source": ["file:///b"])") == "file:///b");
}
