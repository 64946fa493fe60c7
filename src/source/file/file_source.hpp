// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "io/direct_file.hpp"
#include "io/reader_pool.hpp"
#include "snapshot/reference.hpp"
#include "source/file/first_versions.hpp"
#include "source/guarded_sink.hpp"
#include "source/source.hpp"

#include <string>

namespace weightfs::source {

/// A mounted directory (NFS, Lustre, local) or one file in it. The tree is as it stands
/// (tree_walk.hpp). A `weightfs.json` in it is not part of the tree but describes it: the files
/// that it lists have its digests, and must be there with its sizes; the others are known by size,
/// time and inode (file_version.hpp) until they have been read.
///
/// Each read opens the file anew, which on NFS also asks the server whether it changed. The version
/// is compared after a chunk was read and before it goes to the sink. A stale handle is opened
/// again, by path, and must be the same file. A file that has its digest from the listing must be
/// in the version that its fill saw first (first_versions.hpp).
///
/// Thread-safe. A hard-mounted server that is gone holds resolve(), and the opening of a file, in
/// the kernel; reads themselves end within about a second of a stop.
class FileSource final : public Source {
 public:
  explicit FileSource(const snapshot::Reference& reference);

  [[nodiscard]] snapshot::Snapshot resolve(std::stop_token stop) override;
  void read(const snapshot::File& file, ByteRange range, Sink& sink, std::stop_token stop) override;
  [[nodiscard]] bool has_local_files() const noexcept override { return true; }
  void begin_afresh(const snapshot::File& file) override;
  [[nodiscard]] std::optional<Fd> open_local(const snapshot::File& file) override;
  [[nodiscard]] std::string describe() const override;

 private:
  struct Opened {
    Fd fd;
    std::string version;
  };
  [[nodiscard]] std::string path_of(const snapshot::File& file) const;
  /// The version that was resolved, or Error(kChanged).
  [[nodiscard]] Opened open(const snapshot::File& file);
  void read_reopening(const snapshot::File& file, GuardedSink& sink, const std::stop_token& stop);
  void read_from(Opened opened, GuardedSink& sink, const std::stop_token& stop);

  const std::string reference_;
  const std::string root_;  ///< absolute, without '/' at its end
  io::ReaderPool readers_;
  FirstVersions first_versions_;
};

}  // namespace weightfs::source
