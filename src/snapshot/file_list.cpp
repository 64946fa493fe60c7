// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "snapshot/file_list.hpp"

#include <algorithm>
#include <stdexcept>

namespace weightfs::snapshot {

FileList::FileList(std::vector<File> files) : size_(files.size()) {
  chunks_.reserve((size_ + kChunk - 1) / kChunk);
  for (std::size_t begin = 0; begin < size_; begin += kChunk) {
    const auto from = files.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto count = static_cast<std::ptrdiff_t>(std::min(kChunk, size_ - begin));
    chunks_.push_back(std::make_shared<const Chunk>(std::make_move_iterator(from),
                                                    std::make_move_iterator(from + count)));
  }
}

const File& FileList::at(std::size_t index) const {
  if (index >= size_) throw std::out_of_range("no file of this number in the snapshot");
  return (*this)[index];
}

bool FileList::operator==(const FileList& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

File& FileList::Editor::operator[](std::size_t index) {
  std::shared_ptr<Chunk>& chunk = copied_[index / kChunk];
  if (!chunk) chunk = std::make_shared<Chunk>(*list_.chunks_[index / kChunk]);
  return (*chunk)[index % kChunk];
}

FileList FileList::Editor::finish() {
  FileList list = list_;
  for (std::size_t i = 0; i < copied_.size(); ++i) {
    if (copied_[i]) list.chunks_[i] = std::move(copied_[i]);
  }
  return list;
}

}  // namespace weightfs::snapshot
