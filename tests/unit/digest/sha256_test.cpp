// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "digest/sha256.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>

#include <random>
#include <string>

using weightfs::Digest;
using weightfs::Sha256;

namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string random_text(std::size_t size) {
  std::mt19937_64 random(7);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

}  // namespace

TEST_CASE("sha256 gives the digests of FIPS 180-4") {
  CHECK(Digest::of("abc").hex() ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(Digest::of("").hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("a hasher goes on after its digest was taken") {
  Sha256 hasher;
  hasher.update(bytes("a"));
  CHECK(hasher.digest() == Digest::of("a"));
  hasher.update(bytes("bc"));
  CHECK(hasher.digest() == Digest::of("abc"));
}

TEST_CASE("a part hashed from the midstate before it ends in the midstate after it") {
  const std::string text = random_text(5000);
  for (const std::size_t cut : {64U, 128U, 4096U, 4992U}) {
    Sha256 whole;
    whole.update(bytes(text).first(cut));
    Sha256 resumed(whole.midstate(), cut);
    resumed.update(bytes(text).subspan(cut));
    CHECK(resumed.digest() == Digest::of(text));
    CHECK(resumed.length() == text.size());
  }
}

TEST_CASE("the length of a resumed hash survives 32 bits of bits") {
  // 1 GiB is 2^33 bits: the high word of the counter is in play.
  const std::string block(1 << 20, 'x');
  Sha256 whole;
  for (int i = 0; i < 1024; ++i) whole.update(bytes(block));
  Sha256 resumed(whole.midstate(), whole.length());
  resumed.update(bytes("end"));
  whole.update(bytes("end"));
  CHECK(resumed.digest() == whole.digest());
}

TEST_CASE("a midstate inside a block is refused") {
  Sha256 hasher;
  hasher.update(bytes("abc"));
  CHECK_THROWS_AS(hasher.midstate(), weightfs::Error);
  CHECK_THROWS_AS(Sha256({}, 3), weightfs::Error);
}

TEST_CASE("only 64 hexadecimal digits are a digest") {
  const Digest digest = Digest::of("abc");
  CHECK(Digest::parse(digest.hex()) == digest);
  CHECK(Digest::parse("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD") ==
        digest);
  CHECK_FALSE(Digest::parse(""));
  CHECK_FALSE(Digest::parse(digest.hex() + "0"));
  CHECK_FALSE(Digest::parse(std::string(63, 'a') + "g"));
  CHECK_FALSE(Digest::parse("sha256:" + digest.hex()));
}
