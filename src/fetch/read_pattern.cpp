// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "fetch/read_pattern.hpp"

#include "store/partial_blob.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace weightfs::fetch {

namespace {

constexpr std::uint64_t kBlock = store::kBlockSize;
constexpr std::uint64_t kSurelyWeights = 64ULL << 20;
/// The kernel sends the READs of one reader side by side, so they arrive out of order by up to its
/// read-ahead window.
constexpr std::uint64_t kReorder = 4ULL << 20;
constexpr std::uint64_t kLoaderShare = 4;  // a quarter of the file

bool ends_with_ignoring_case(std::string_view text, std::string_view ending) noexcept {
  if (text.size() < ending.size()) return false;
  text.remove_prefix(text.size() - ending.size());
  return std::equal(text.begin(), text.end(), ending.begin(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
}

}  // namespace

bool holds_weights(const snapshot::File& file) noexcept {
  static constexpr std::string_view kExtensions[] = {
      ".safetensors", ".gguf", ".bin", ".pt", ".pth", ".onnx", ".ckpt", ".h5", ".msgpack", ".npz"};
  if (file.size >= kSurelyWeights) return true;
  return std::any_of(std::begin(kExtensions), std::end(kExtensions), [&](std::string_view ending) {
    return ends_with_ignoring_case(file.path, ending);
  });
}

ReadPattern::ReadPattern(const snapshot::File& file, Options options)
    : size_(file.size),
      weights_(holds_weights(file)),
      options_(options),
      blocks_(static_cast<std::size_t>((file.size + kBlock - 1) / kBlock)) {
}

void ReadPattern::on_read(ByteRange range) {
  range = range.intersect({0, size_});
  if (range.empty()) return;
  for (std::uint64_t i = range.begin / kBlock; i * kBlock < range.end; ++i) {
    const auto block = static_cast<std::size_t>(i);
    if (blocks_[block]) continue;
    blocks_[block] = true;
    demanded_ += std::min(size_, (i + 1) * kBlock) - i * kBlock;
  }
  follow_runs(range);
}

void ReadPattern::forget() {
  std::fill(blocks_.begin(), blocks_.end(), false);
  demanded_ = 0;
  runs_ = {};
}

bool ReadPattern::is_loader() const noexcept {
  if (!weights_ || !wants_file()) return false;
  return demanded_ >= options_.snapshot_ahead_after || demanded_ >= size_ / kLoaderShare;
}

ByteRange ReadPattern::next_bytes(std::uint64_t window) const noexcept {
  const Run& run = runs_[current_];
  if (run.end - run.begin < options_.file_ahead_after) return {};
  return ByteRange{run.end, run.end + window}.intersect({0, size_});
}

void ReadPattern::follow_runs(ByteRange range) {
  ++reads_;
  const auto continued = std::find_if(runs_.begin(), runs_.end(), [&](const Run& run) {
    return run.last_used != 0 && range.begin <= run.end + kReorder &&
           range.end + kReorder >= run.end;
  });
  if (continued != runs_.end()) {
    continued->end = std::max(continued->end, range.end);
    continued->last_used = reads_;
    current_ = static_cast<std::size_t>(continued - runs_.begin());
    return;
  }
  const auto oldest = std::min_element(runs_.begin(), runs_.end(), [](const Run& a, const Run& b) {
    return a.last_used < b.last_used;
  });
  *oldest = {range.begin, range.end, reads_};
  current_ = static_cast<std::size_t>(oldest - runs_.begin());
}

}  // namespace weightfs::fetch
