// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/trace_file.hpp"

#include "base/error.hpp"
#include "base/file.hpp"
#include "policy/trace_parser.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <zlib.h>

#include <memory>
#include <string>

namespace weightfs::cli {

namespace {

struct CloseGzip {
  void operator()(gzFile file) const noexcept { gzclose(file); }
};
using GzipFile = std::unique_ptr<gzFile_s, CloseGzip>;

/// zlib takes what is not compressed as it is.
GzipFile open_gzip(const std::filesystem::path& path) {
  Fd fd = open_file(path, O_RDONLY);
  GzipFile file(gzdopen(fd.value(), "rb"));
  if (!file) throw Error(Errc::kIo, "cannot read it: out of memory");
  static_cast<void>(fd.release());  // gzclose closes it
  return file;
}

/// What gzread and gzclose do not tell apart: the end of the file, a failure, and a file that ends
/// before its compressed data does.
void check(gzFile file) {
  int code = Z_OK;
  const char* const message = gzerror(file, &code);
  if (code == Z_OK || code == Z_STREAM_END) return;
  if (code == Z_ERRNO) throw_errno(errno, "cannot read it");
  if (code == Z_BUF_ERROR) throw Error(Errc::kCorrupt, "its compressed data is cut off");
  throw Error(Errc::kCorrupt, fmt::format("its compressed data is wrong: {}", message));
}

policy::Trace read(const std::filesystem::path& path, const policy::CsvColumns& columns) {
  const GzipFile file = open_gzip(path);
  policy::TraceParser parser(columns);
  std::string buffer(256 << 10, '\0');
  for (;;) {
    const int got = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (got <= 0) break;
    parser.feed(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)));
  }
  check(file.get());
  return std::move(parser).finish();
}

}  // namespace

policy::Trace read_trace_file(const std::filesystem::path& path,
                              const policy::CsvColumns& columns) {
  try {
    return read(path, columns);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace weightfs::cli
