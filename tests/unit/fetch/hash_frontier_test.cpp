// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/hash_frontier.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/partial_blob.hpp"

#include <catch2/catch_test_macros.hpp>

#include <sys/mman.h>

#include <random>
#include <string>

namespace weightfs::fetch {
namespace {

constexpr std::uint64_t kPart = store::kPartSize;

std::string content(std::uint64_t size) {
  std::mt19937_64 random(3);
  std::string text(size, '\0');
  for (std::size_t i = 0; i < text.size(); i += 97) text[i] = static_cast<char>(random());
  return text;
}

Fd file_with(const std::string& text) {
  Fd fd(::memfd_create("hash-frontier", MFD_CLOEXEC));
  write_at(fd, 0, std::as_bytes(std::span(text)));
  return fd;
}

TEST_CASE("the frontier's hash is the hash of the whole, in whatever steps it went") {
  const std::string text = content(2 * kPart + 12345);
  const Fd fd = file_with(text);
  HashFrontier frontier(text.size());
  std::vector<std::byte> buffer(100'003);
  for (const std::uint64_t end :
       {std::uint64_t{1}, std::uint64_t{70'000}, kPart, kPart + 64, std::uint64_t{text.size()}}) {
    frontier.advance(fd, end, buffer);
    CHECK(frontier.position() == end);
  }
  CHECK(frontier.digest() == Digest::of(text));
  REQUIRE(frontier.midstates().size() == 2);
  // Any part can be checked alone.
  Sha256 second(frontier.midstates()[0], kPart);
  second.update(std::as_bytes(std::span(text).subspan(kPart, kPart)));
  CHECK(second.midstate() == frontier.midstates()[1]);
}

TEST_CASE("a file that ends with a part has no midstate at its end") {
  const std::string text = content(kPart);
  HashFrontier frontier(text.size());
  std::vector<std::byte> buffer(1 << 20);
  frontier.advance(file_with(text), text.size(), buffer);
  CHECK(frontier.midstates().empty());
  CHECK(frontier.digest() == Digest::of(text));
}

TEST_CASE("a file that is shorter than promised is an error") {
  HashFrontier frontier(100);
  std::vector<std::byte> buffer(64);
  CHECK_THROWS_AS(frontier.advance(file_with("short"), 100, buffer), Error);
}

}  // namespace
}  // namespace weightfs::fetch
