// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/open_blobs.hpp"

#include <utility>

namespace weightfs::store {

OpenBlobs::OpenBlobs() : table_(std::make_shared<Synchronized<Table>>()) {
}

std::shared_ptr<OpenBlobs::Hold> OpenBlobs::hold(const Digest& digest, std::uint64_t size) {
  auto generation = table_->with([&](Table& table) {
    std::shared_ptr<Generation>& current = table.current[digest];
    if (!current)
      current = std::make_shared<Generation>(Generation{.digest = digest, .size = size});
    ++current->holds;
    return current;
  });
  return std::make_shared<Hold>(table_, std::move(generation));
}

std::shared_ptr<const Fd> OpenBlobs::attach(std::shared_ptr<Hold> hold, Fd fd) {
  // Members go in reverse order: the descriptor is closed before the bytes stop counting.
  struct HeldFile {
    std::shared_ptr<Hold> hold;
    Fd fd;
  };
  auto file = std::make_shared<HeldFile>(HeldFile{std::move(hold), std::move(fd)});
  const Fd* descriptor = &file->fd;
  return {std::move(file), descriptor};
}

void OpenBlobs::evicted(const Digest& digest) {
  table_->with([&](Table& table) {
    const auto found = table.current.find(digest);
    if (found == table.current.end()) return;
    found->second->evicted = true;
    table.evicted_bytes += found->second->size;
    table.current.erase(found);
  });
}

std::uint64_t OpenBlobs::evicted_bytes() const {
  return table_->with([](const Table& table) { return table.evicted_bytes; });
}

bool OpenBlobs::held(const Digest& digest) const {
  return table_->with([&](const Table& table) { return table.current.contains(digest); });
}

OpenBlobs::Hold::Hold(std::weak_ptr<Synchronized<Table>> table,
                      std::shared_ptr<Generation> generation)
    : table_(std::move(table)), generation_(std::move(generation)) {
}

OpenBlobs::Hold::~Hold() {
  const auto table = table_.lock();
  if (!table) return;
  table->with([&](Table& locked) {
    if (--generation_->holds > 0) return;
    if (generation_->evicted) {
      locked.evicted_bytes -= generation_->size;
    } else {
      locked.current.erase(generation_->digest);
    }
  });
}

}  // namespace weightfs::store
