// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/byte_range.hpp"
#include "base/synchronized.hpp"
#include "digest/digest.hpp"
#include "source/source.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace weightfs::fetch {

/// A source whose bytes follow from path and position, that keeps a log of what was asked, and that
/// a test can hold up or make fail at any byte. Thread-safe.
class FakeSource final : public source::Source {
 public:
  /// Called before each chunk of at most 16 KiB, with its range, on the reading thread, without a
  /// lock. Blocks or throws at will.
  using OnChunk = std::function<void(const snapshot::File&, ByteRange chunk, std::stop_token)>;

  struct Request {
    std::string path;
    ByteRange range;
    bool operator==(const Request&) const = default;
  };

  /// The bytes of a range of a file.
  [[nodiscard]] static std::string content(const std::string& path, ByteRange range);
  /// A file of the listing, with the digest of its content.
  [[nodiscard]] static snapshot::File file(const std::string& path, std::uint64_t size);

  void on_chunk(OnChunk hook);
  /// What was asked for, in order.
  [[nodiscard]] std::vector<Request> requests() const;
  /// How often each byte was delivered: the ranges that came more than once, or not at all.
  [[nodiscard]] std::vector<ByteRange> not_once(const snapshot::File& file) const;
  [[nodiscard]] std::uint64_t delivered() const;
  [[nodiscard]] unsigned most_at_once() const;

  [[nodiscard]] snapshot::Snapshot resolve(std::stop_token stop) override;
  void read(const snapshot::File& file, ByteRange range, source::Sink& sink,
            std::stop_token stop) override;
  [[nodiscard]] std::optional<Fd> open_local(const snapshot::File& file) override;
  [[nodiscard]] std::string describe() const override { return "fake"; }
  [[nodiscard]] bool serves_ranges() const noexcept override { return sends_ranges; }
  [[nodiscard]] bool has_local_files() const noexcept override { return static_cast<bool>(local); }

  /// Whether it sends ranges; else what lies before one is sent, too, and skipped.
  std::atomic<bool> sends_ranges{true};
  /// What open_local() gives, if anything.
  std::function<std::optional<Fd>(const snapshot::File&)> local;

 private:
  struct State {
    OnChunk hook;
    std::vector<Request> requests;
    std::map<std::string, std::vector<ByteRange>> delivered;
    unsigned now = 0;
    unsigned most = 0;
  };
  Synchronized<State> state_;
};

}  // namespace weightfs::fetch
