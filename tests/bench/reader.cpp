// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
//
// reader sequential|random FILE
//
// Reads all of FILE once and prints the seconds from before open to after close, and a sum over one
// word of every page that depends on the order, by which two files can be told apart. `sequential`
// calls read(2) with 1 MiB; `random` maps the file and copies its pages of 4 KiB in a random order,
// the same each time.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBlock = 1 << 20;

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::system_category(), what);
  return result;
}

class Sum {
 public:
  void add(const std::byte* page) {
    std::uint64_t word = 0;
    std::memcpy(&word, page, sizeof word);
    value_ = value_ * 31 + word;
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

std::uint64_t read_sequentially(const char* path, std::span<std::byte> buffer) {
  Sum sum;
  const int file = checked(::open(path, O_RDONLY | O_CLOEXEC), "open");
  for (;;) {
    const ssize_t got = ::read(file, buffer.data(), buffer.size());
    if (got < 0) throw std::system_error(errno, std::system_category(), "read");
    if (got == 0) break;
    const auto length = static_cast<std::size_t>(got);
    for (std::size_t offset = 0; offset + kPage <= length; offset += kPage)
      sum.add(&buffer[offset]);
  }
  ::close(file);
  return sum.value();
}

std::uint64_t read_randomly(const char* path, std::span<const std::uint32_t> order) {
  Sum sum;
  std::byte page[kPage];
  const int file = checked(::open(path, O_RDONLY | O_CLOEXEC), "open");
  const std::size_t length = order.size() * kPage;
  void* const view = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file, 0);
  if (view == MAP_FAILED) throw std::system_error(errno, std::system_category(), "mmap");
  for (const std::uint32_t number : order) {
    std::memcpy(page, static_cast<const std::byte*>(view) + number * kPage, kPage);
    asm volatile("" : : "r"(&page) : "memory");  // or only the word that is used would be copied
    sum.add(page);
  }
  ::munmap(view, length);
  ::close(file);
  return sum.value();
}

std::vector<std::uint32_t> shuffled_pages(const char* path) {
  const int file = checked(::open(path, O_RDONLY | O_CLOEXEC), "open");
  const off_t size = ::lseek(file, 0, SEEK_END);
  ::close(file);
  std::vector<std::uint32_t> order(static_cast<std::size_t>(size) / kPage);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937 random(1);  // std::shuffle differs between libraries; this does not
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

void run(std::string_view mode, const char* path) {
  std::vector<std::byte> buffer;
  std::vector<std::uint32_t> order;
  if (mode == "sequential") {
    buffer.resize(kBlock);
  } else if (mode == "random") {
    order = shuffled_pages(path);
  } else {
    throw std::invalid_argument("usage: reader sequential|random FILE");
  }
  const auto began = std::chrono::steady_clock::now();
  const std::uint64_t sum =
      buffer.empty() ? read_randomly(path, order) : read_sequentially(path, buffer);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%.6f %016llx\n", took.count(), static_cast<unsigned long long>(sum));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc == 3 ? argv[1] : "", argc == 3 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reader: %s\n", error.what());
    return 1;
  }
}
