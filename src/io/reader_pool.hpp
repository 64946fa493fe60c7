// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "io/direct_reader.hpp"

#include <memory>
#include <vector>

namespace weightfs::io {

/// DirectReaders for whoever reads at the moment. Finished ones are kept warm for the next range,
/// but never more than are in use, so that all pools together hold at most twice what is being read
/// with; when the last is done, one is kept, and that one holds no memory.
///
/// Thread-safe. Leases must not outlive it.
class ReaderPool {
 public:
  class Lease {
   public:
    Lease(ReaderPool& pool, std::unique_ptr<DirectReader> reader)
        : pool_(pool), reader_(std::move(reader)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_.give_back(std::move(reader_)); }

    DirectReader* operator->() const noexcept { return reader_.get(); }

   private:
    ReaderPool& pool_;
    std::unique_ptr<DirectReader> reader_;
  };

  explicit ReaderPool(DirectReaderOptions options) : options_(options) {}

  [[nodiscard]] Lease take();
  /// Readers that nobody uses at the moment.
  [[nodiscard]] std::size_t idle() const;

 private:
  struct State {
    unsigned in_use = 0;
    std::vector<std::unique_ptr<DirectReader>> idle;
  };
  void give_back(std::unique_ptr<DirectReader> reader) noexcept;

  const DirectReaderOptions options_;
  Synchronized<State> state_;
};

}  // namespace weightfs::io
