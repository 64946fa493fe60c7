// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "snapshot/file.hpp"

#include <compare>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace weightfs::snapshot {

/// The files of a snapshot. Reads like a const vector; copies share their files, so that a list
/// that differs in one file costs a few hundred files and not all of them. A value; thread-safe as
/// a const vector is. Throws std::out_of_range from at().
class FileList {
 public:
  class Iterator;
  class Editor;

  FileList() = default;
  explicit FileList(std::vector<File> files);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] const File& operator[](std::size_t index) const noexcept {
    return (*chunks_[index / kChunk])[index % kChunk];
  }
  [[nodiscard]] const File& at(std::size_t index) const;
  [[nodiscard]] Iterator begin() const noexcept;
  [[nodiscard]] Iterator end() const noexcept;

  bool operator==(const FileList& other) const;

 private:
  static constexpr std::size_t kChunk = 256;
  using Chunk = std::vector<File>;

  std::vector<std::shared_ptr<const Chunk>> chunks_;  ///< all full but the last
  std::size_t size_ = 0;
};

/// Random access. The list must outlive it.
class FileList::Iterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = File;
  using difference_type = std::ptrdiff_t;
  using pointer = const File*;
  using reference = const File&;

  Iterator() = default;
  Iterator(const FileList& list, std::size_t index) : list_(&list), index_(index) {}

  reference operator*() const noexcept { return (*list_)[index_]; }
  pointer operator->() const noexcept { return &(*list_)[index_]; }
  reference operator[](difference_type by) const noexcept { return *(*this + by); }

  Iterator& operator+=(difference_type by) noexcept {
    index_ += static_cast<std::size_t>(by);  // modulo 2^64, so backwards as well
    return *this;
  }
  Iterator& operator-=(difference_type by) noexcept { return *this += -by; }
  Iterator& operator++() noexcept { return *this += 1; }
  Iterator& operator--() noexcept { return *this += -1; }
  Iterator operator++(int) noexcept { return std::exchange(*this, *this + 1); }
  Iterator operator--(int) noexcept { return std::exchange(*this, *this - 1); }

  friend Iterator operator+(Iterator at, difference_type by) noexcept { return at += by; }
  friend Iterator operator+(difference_type by, Iterator at) noexcept { return at += by; }
  friend Iterator operator-(Iterator at, difference_type by) noexcept { return at -= by; }
  friend difference_type operator-(const Iterator& left, const Iterator& right) noexcept {
    return static_cast<difference_type>(left.index_) - static_cast<difference_type>(right.index_);
  }
  bool operator==(const Iterator& other) const noexcept { return index_ == other.index_; }
  auto operator<=>(const Iterator& other) const noexcept { return index_ <=> other.index_; }

 private:
  const FileList* list_ = nullptr;
  std::size_t index_ = 0;
};

/// A list in the making that begins as `list`, which must outlive it. Confined to one thread.
class FileList::Editor {
 public:
  explicit Editor(const FileList& list) : list_(list), copied_(list.chunks_.size()) {}

  /// `index` < size(). Copies its neighbours when they are touched for the first time.
  [[nodiscard]] File& operator[](std::size_t index);
  /// The list with all changes. Used up afterwards.
  [[nodiscard]] FileList finish();

 private:
  const FileList& list_;
  std::vector<std::shared_ptr<Chunk>> copied_;  ///< null where nothing was touched
};

inline FileList::Iterator FileList::begin() const noexcept {
  return {*this, 0};
}

inline FileList::Iterator FileList::end() const noexcept {
  return {*this, size_};
}

}  // namespace weightfs::snapshot
