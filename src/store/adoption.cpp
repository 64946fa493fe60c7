// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "store/adoption.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "store/parts_file.hpp"
#include "store/volume_state.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

namespace weightfs::store {

namespace {

/// A folder under partial/, for as long as the blob is on its way. Without a map it is no partial
/// blob: what a kill leaves of it, the next open removes.
class StagingFolder {
 public:
  StagingFolder(PartialTable& partials, const Layout& layout, const Digest& digest)
      : claim_(partials.claim(digest)), folder_(layout.partial(digest)) {
    remove();
    if (::mkdir(folder_.c_str(), 0700) != 0) throw_errno(errno, "create " + folder_.string());
  }
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;
  ~StagingFolder() { remove(); }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return folder_; }

 private:
  void remove() noexcept {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
    if (!error) claim_.forget();
  }

  PartialTable::Claim claim_;
  const std::filesystem::path folder_;
};

void link_file(const Fd& file, const std::filesystem::path& to) {
  const std::string from = fmt::format("/proc/self/fd/{}", file.value());
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  if (errno == EXDEV) {
    throw Error(Errc::kUnsupported,
                "it is on another filesystem, or behind another mount, than the store");
  }
  if (errno == EPERM) throw Error(Errc::kPermission, "the kernel lets nobody link this file");
  throw_errno(errno, "link " + to.string());
}

}  // namespace

WriteGuard::WriteGuard(const Fd& file) : file_(file) {
  struct stat status{};
  if (::fstat(file.value(), &status) != 0) throw_errno(errno, "stat a file to link");
  if (status.st_uid != ::geteuid()) {
    throw Error(Errc::kPermission,
                fmt::format("it belongs to user {}: only files of the daemon's own user, {}, can "
                            "be linked",
                            status.st_uid, ::geteuid()));
  }
  if (::fchmod(file.value(), 0444) != 0) throw_errno(errno, "make a file read-only");
  // The default signal for who wants to break the lease ends the process.
  if (::fcntl(file.value(), F_SETSIG, SIGURG) != 0 ||
      ::fcntl(file.value(), F_SETLEASE, F_RDLCK) != 0) {
    if (errno == EAGAIN) throw Error(Errc::kBusy, "somebody has it open for writing");
    throw Error(Errc::kUnsupported,
                "whether somebody has it open for writing cannot be told on its filesystem");
  }
}

WriteGuard::~WriteGuard() {
  ::fcntl(file_.value(), F_SETLEASE, F_UNLCK);
}

Blob Volume::State::adopt(const Digest& digest, const Adoption& adoption) {
  const StagingFolder folder(partials_, layout_, digest);
  const WriteGuard guard(adoption.file);
  adoption.check();
  Staged staged{
      .data = folder.path() / "data", .parts = {}, .identity = identity_of(adoption.file)};
  link_file(adoption.file, staged.data);
  if (!adoption.midstates.empty()) {
    staged.parts = folder.path() / "parts";
    write_parts(staged.parts, digest, staged.identity.size, adoption.midstates);
  }
  if (::fsync(adoption.file.value()) != 0) throw_errno(errno, "flush " + staged.data.string());
  return health_.watch([&] { return publish(digest, staged); });
}

}  // namespace weightfs::store
