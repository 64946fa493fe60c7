// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "source/source.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace weightfs::test {

/// Keeps what it is sent. `gap` tells whether a call did not continue the one before.
class CollectingSink final : public source::Sink {
 public:
  explicit CollectingSink(std::uint64_t begin) : next_(begin) {}

  void write(std::uint64_t offset, std::span<const std::byte> data) override {
    gap = gap || offset != next_;
    next_ = offset + data.size();
    bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
    if (after_write) after_write();
  }

  void skipped(std::uint64_t count) override {
    bytes_skipped += count;
    if (after_skip) after_skip();
  }

  std::string bytes;
  std::uint64_t bytes_skipped = 0;
  std::function<void()> after_skip;
  bool gap = false;
  std::function<void()> after_write;

 private:
  std::uint64_t next_;
};

}  // namespace weightfs::test
