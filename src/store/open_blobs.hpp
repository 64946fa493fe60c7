// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/fd.hpp"
#include "base/synchronized.hpp"
#include "digest/digest.hpp"

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace weightfs::store {

/// Who holds which blob open, so that the bytes of an evicted one are accounted for until its last
/// holder lets go. A digest that is evicted and published again has a new generation, with bytes of
/// its own. Thread-safe. Holders may outlive it.
class OpenBlobs {
 public:
  class Hold;

  OpenBlobs();

  /// A hold on the blob that stands under this name now. Taken before the file is opened: then an
  /// eviction that the open did not notice has marked the hold, and one that it did notice left no
  /// file.
  [[nodiscard]] std::shared_ptr<Hold> hold(const Digest& digest, std::uint64_t size);
  /// A descriptor that keeps the hold until the last copy is gone.
  [[nodiscard]] static std::shared_ptr<const Fd> attach(std::shared_ptr<Hold> hold, Fd fd);

  /// The file under this name was unlinked.
  void evicted(const Digest& digest);
  [[nodiscard]] std::uint64_t evicted_bytes() const;
  /// Whether anybody holds what stands under this name now.
  [[nodiscard]] bool held(const Digest& digest) const;

 private:
  struct Generation {
    Digest digest;
    std::uint64_t size = 0;
    std::uint64_t holds = 0;
    bool evicted = false;
  };
  struct Table {
    std::unordered_map<Digest, std::shared_ptr<Generation>> current;
    std::uint64_t evicted_bytes = 0;
  };

  std::shared_ptr<Synchronized<Table>> table_;
};

/// One reader's share; lets go on destruction.
class OpenBlobs::Hold {
 public:
  Hold(std::weak_ptr<Synchronized<Table>> table, std::shared_ptr<Generation> generation);
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold();

 private:
  std::weak_ptr<Synchronized<Table>> table_;
  std::shared_ptr<Generation> generation_;  // guarded by *table_
};

}  // namespace weightfs::store
