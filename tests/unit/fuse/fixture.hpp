// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "fake_kernel.hpp"
#include "mounted.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <memory>

namespace weightfs::fuse::test {

inline constexpr std::size_t kWeights = 3 * 1024 * 1024 + 17;
inline constexpr std::size_t kDamaged = 1'000'000;  // where a blob gets damaged

/// What sub/w.safetensors holds.
inline std::string weights() {
  std::string text(kWeights, '\0');
  std::uint32_t value = 1;
  for (char& c : text) c = static_cast<char>((value = value * 1664525 + 1013904223) >> 24);
  return text;
}

/// A model in a directory, "org/name", and a daemon that shows it to a FakeKernel.
struct Fixture {
  Fixture() : memory(keeper::SessionMemory::create()) {
    std::filesystem::create_directories(scratch.path() / "model/sub");
    write("model/config.json", "{}");
    write("model/sub/w.safetensors", weights());
    write("model/empty", "");
    start();
    daemon->add("org/name", scratch.path() / "model");
  }
  void write(const std::string& path, const std::string& content) const {
    std::ofstream(scratch.path() / path, std::ios::binary) << content;
  }
  void start() {
    daemon.reset();
    daemon = std::make_unique<Mounted>(Mounted::World{.directory = scratch.path(),
                                                      .memory = memory,
                                                      .kernel = kernel,
                                                      .backings = backings,
                                                      .passthrough = passthrough,
                                                      .boot_id = boot_id,
                                                      .checks = checks,
                                                      .before_ready = before_ready,
                                                      .clock_shift = clock_shift});
  }
  std::uint64_t node(const std::string& path) {
    const Reply reply = kernel.walk(path);
    REQUIRE(reply.error == 0);
    return reply.as<fuse_entry_out>().nodeid;
  }
  Reply open(std::uint64_t node) {
    Reply reply = kernel.call(FUSE_OPEN, node, fuse_open_in{});
    if (reply.error == 0) handles.emplace(node, reply.as<fuse_open_out>().fh);
    return reply;
  }
  /// What the kernel sends when one of the opens of the node ends.
  fuse_release_in closing(std::uint64_t node) {
    const auto open = handles.find(node);
    REQUIRE(open != handles.end());
    fuse_release_in in = {};
    in.fh = open->second;
    handles.erase(open);
    return in;
  }
  void release(std::uint64_t node) {
    CHECK(kernel.call(FUSE_RELEASE, node, closing(node)).error == 0);
  }
  /// Adds a model of one file whose digest comes with the listing.
  void add_listed(const std::string& name, const std::string& path, std::uint64_t size,
                  const std::string& content = weights()) const {
    snapshot::File file;
    file.path = path;
    file.size = size;
    file.sha256 = Digest::of(content);
    const std::string source = "file://" + (scratch.path() / "model/sub").string();
    daemon->catalog.add(name, source,
                        std::make_shared<const snapshot::Snapshot>(source, "r", std::vector{file}));
  }
  [[nodiscard]] std::filesystem::path blob(const std::string& content = weights()) const {
    const std::string name = Digest::of(content).hex();
    return scratch.path() / "store/blobs/sha256" / name.substr(0, 2) / name;
  }
  /// Changes a byte of the blob behind everybody's back.
  void damage_blob() const {
    struct stat before = {};
    REQUIRE(::stat(blob().c_str(), &before) == 0);
    std::filesystem::permissions(blob(), std::filesystem::perms::owner_all);
    {
      std::fstream damaged(blob(), std::ios::in | std::ios::out | std::ios::binary);
      damaged.seekp(kDamaged);
      damaged.put(static_cast<char>(~weights()[kDamaged]));
    }
    const timespec times[] = {before.st_atim, before.st_mtim};
    REQUIRE(::utimensat(AT_FDCWD, blob().c_str(), times, 0) == 0);
  }
  std::string read_all(std::uint64_t node) {
    std::string all;
    for (;;) {
      const Reply part = kernel.read(node, all.size(), 1 << 20);
      REQUIRE(part.error == 0);
      if (part.payload.empty()) return all;
      all += part.text();
    }
  }

  ScratchDirectory scratch;
  keeper::SessionMemory memory;
  FakeKernel kernel;
  FakeBackings backings;
  bool passthrough = true;
  std::string boot_id = "this boot";
  vfs::CheckPolicy checks = vfs::CheckPolicy::kBoot;
  std::function<void()> before_ready;
  std::chrono::seconds clock_shift{};
  std::multimap<std::uint64_t, std::uint64_t> handles;  ///< of the open nodes
  std::unique_ptr<Mounted> daemon;
};

/// Asks until it is so; false if it is not for a minute.
template <class Predicate>
bool in_time(Predicate predicate) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!predicate()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Looks a path up until its node is such a one.
template <class Predicate>
std::uint64_t node_that(Fixture& fixture, const std::string& path, Predicate predicate) {
  std::uint64_t now = 0;
  REQUIRE(in_time([&] { return predicate(now = fixture.node(path)); }));
  return now;
}

/// Reads a file to its end and waits until it has a complete node.
inline std::uint64_t complete(Fixture& fixture, const std::string& path) {
  const std::uint64_t node = fixture.node(path);
  CHECK(fixture.open(node).error == 0);
  fixture.read_all(node);
  fixture.release(node);
  return node_that(fixture, path, [](std::uint64_t now) { return (now & 1) != 0; });
}

}  // namespace weightfs::fuse::test
