// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store_fixture.hpp"

#include "base/error.hpp"
#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <span>
#include <system_error>

namespace weightfs::store {

namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory(const fs::path& parent) {
  std::string pattern = (parent / "weightfs-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw_errno(errno, "create " + pattern);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string random_bytes(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    bytes.replace(at, std::min(sizeof word, size - at), reinterpret_cast<const char*>(&word),
                  std::min(sizeof word, size - at));
  }
  return bytes;
}

Hashed hash(std::string_view content) {
  Hashed result;
  Sha256 hasher;
  while (content.size() > kPartSize) {
    hasher.update(std::as_bytes(std::span(content.substr(0, kPartSize))));
    result.midstates.push_back(hasher.midstate());
    content.remove_prefix(kPartSize);
  }
  hasher.update(std::as_bytes(std::span(content)));
  result.digest = hasher.digest();
  return result;
}

void fill(PartialBlob& partial, std::string_view content) {
  partial.write(0, std::as_bytes(std::span(content)));
  partial.set_written({0, content.size()});
}

namespace {

Blob put_into(auto& place, std::string_view content) {
  const Hashed hashed = hash(content);
  const auto partial = place.partial(hashed.digest, content.size());
  fill(*partial, content);
  return partial->commit(hashed.digest, hashed.midstates);
}

}  // namespace

Blob put(Volume& volume, std::string_view content) {
  return put_into(volume, content);
}

Blob put(Store& store, std::string_view content) {
  return put_into(store, content);
}

std::string content_of(const Blob& blob) {
  std::string content(blob.size + 1, '\0');
  content.resize(read_at(*blob.fd, 0, std::as_writable_bytes(std::span(content))));
  return content;
}

std::unique_ptr<Store> open_store(const fs::path& directory, const Clock& clock) {
  return Store::open({.directories = {directory}, .boot_id = "boot-1"}, clock, Log::silent());
}

std::unique_ptr<Volume> open_volume(const fs::path& directory, const Clock& clock,
                                    const std::string& boot_id) {
  return Volume::open({.directory = directory, .boot_id = boot_id}, clock, Log::silent());
}

fs::path blob_path(const fs::path& directory, const Digest& digest) {
  return directory / "blobs" / "sha256" / digest.hex().substr(0, 2) / digest.hex();
}

fs::path parts_path(const fs::path& directory, const Digest& digest) {
  return blob_path(directory, digest).string() + ".parts";
}

fs::path partial_path(const fs::path& directory, const Digest& key) {
  return directory / "partial" / key.hex();
}

void write_text(const fs::path& path, std::string_view text) {
  const Fd fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  write_at(fd, 0, std::as_bytes(std::span(text)));
}

std::string read_text(const fs::path& path) {
  return read_file(path, 1ULL << 30);
}

void flip_byte(const fs::path& path, std::uint64_t offset) {
  struct stat before{};
  if (::stat(path.c_str(), &before) != 0) throw_errno(errno, "stat " + path.string());
  fs::permissions(path, fs::perms::owner_all);
  {
    const Fd fd = open_file(path, O_RDWR);
    std::array<std::byte, 1> byte{};
    read_at(fd, offset, byte);
    byte[0] ^= std::byte{1};
    write_at(fd, offset, byte);
    const std::array<timespec, 2> times{before.st_atim, before.st_mtim};
    ::futimens(fd.value(), times.data());
  }
  ::chmod(path.c_str(), before.st_mode);
}

void make_unreadable(const fs::path& path) {
  fs::remove(path);
  // Nothing is mapped at address 0.
  fs::create_symlink("/proc/self/mem", path);
}

std::size_t entries_in(const fs::path& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

}  // namespace weightfs::store
