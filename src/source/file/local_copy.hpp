// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "source/file/local_tree.hpp"
#include "source/guarded_sink.hpp"
#include "source/source.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace weightfs::source {

/// A source of which one file lies on this machine as well, as somebody has found out by hashing
/// that copy: it is read instead, for as long as it is the version that was hashed. All else is
/// the other source's.
///
/// Should the copy change under way, the rest comes from the other source where `is_needed` says
/// that somebody waits for it, and else is Error(kChanged).
///
/// Thread-safe.
class LocalCopy final : public Source {
 public:
  struct Copy {
    std::shared_ptr<LocalTree> tree;
    LocalTree::File file;
    Digest sha256;
  };
  LocalCopy(Copy copy, SourcePtr origin, std::function<bool()> is_needed);

  [[nodiscard]] snapshot::Snapshot resolve(std::stop_token stop) override;
  void read(const snapshot::File& file, ByteRange range, Sink& sink, std::stop_token stop) override;
  void begin_afresh(const snapshot::File& file) override;
  void refute(const snapshot::File& file) override;
  [[nodiscard]] bool has_others(const snapshot::File& file) const override;
  [[nodiscard]] bool serves_ranges() const noexcept override;
  [[nodiscard]] bool has_local_files() const noexcept override { return true; }
  [[nodiscard]] std::optional<Fd> open_local(const snapshot::File& file) override;
  [[nodiscard]] std::string describe() const override;

  /// Bytes of the copy that were read.
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }
  /// Whether anybody asked for it at all.
  [[nodiscard]] bool was_opened() const noexcept { return opened_; }

 private:
  [[nodiscard]] bool is_copied(const snapshot::File& file) const {
    return file.sha256 == copy_.sha256 && file.size == copy_.file.size;
  }
  void read_copy(GuardedSink& sink, const std::stop_token& stop);

  const Copy copy_;
  const SourcePtr origin_;
  const std::function<bool()> is_needed_;
  std::atomic<bool> changed_ = false;
  std::atomic<bool> opened_ = false;
  std::atomic<std::uint64_t> bytes_read_ = 0;
};

}  // namespace weightfs::source
