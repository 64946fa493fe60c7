// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "net/http_client.hpp"

#include <cstdint>
#include <string>

namespace weightfs::source {

/// What the body of an answer to a ranged GET is going to be.
struct RangedAnswer {
  enum class Kind {
    kRange,  ///< 206: bytes from the beginning of the range on
    kWhole,  ///< 200: the server does not do ranges, and sends the file from its first byte
  };
  Kind kind = Kind::kRange;
  ByteRange body;  ///< the bytes of the file that it promises
};

/// Compares the head of an answer with what was asked: `range` of an object of `size` bytes. The
/// body is taken for what is returned, or not at all:
///   206 begins where the range does, ends no later, says so once, and has that length;
///   200 is the whole object, and says its length.
/// Error: kChanged another size; kInvalid another range or a contradiction; kUnsupported an
/// encoding; and as throw_status, of which `credential` is. Pure.
[[nodiscard]] RangedAnswer check_answer(const net::ResponseHead& head, ByteRange range,
                                        std::uint64_t size, const std::string& credential = "");

}  // namespace weightfs::source
