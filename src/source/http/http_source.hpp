// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "net/url.hpp"
#include "snapshot/reference.hpp"
#include "source/http/first_answers.hpp"
#include "source/source.hpp"
#include "source/web.hpp"

#include <atomic>
#include <string>

namespace weightfs::source {

/// A web server. `http(s)://HOST/DIR/` is the tree that `weightfs.json` or `SHA256SUMS` in it
/// describes; `http(s)://HOST/FILE` is a snapshot of one file, known by its validator
/// (http/validator.hpp) until it has been read.
///
/// Files are read with ranged GETs. Those with a validator carry a precondition, and every answer
/// is compared with it. Those whose digest came with the listing are compared with the listing's
/// size, and as http/first_answers.hpp says. A server that ignores ranges is read from the
/// beginning of the file each time, and what was not asked for is thrown away: see serves_ranges().
///
/// Thread-safe. What `web` refers to must outlive it.
class HttpSource final : public Source {
 public:
  /// Error(kInvalid) for a URL that is neither a directory nor a file, or a directory with a query.
  HttpSource(const snapshot::Reference& reference, Web web);

  [[nodiscard]] snapshot::Snapshot resolve(std::stop_token stop) override;
  void read(const snapshot::File& file, ByteRange range, Sink& sink, std::stop_token stop) override;
  void begin_afresh(const snapshot::File& file) override;
  [[nodiscard]] std::optional<Fd> open_local(const snapshot::File& file) override;
  [[nodiscard]] std::string describe() const override;

  [[nodiscard]] bool serves_ranges() const noexcept override { return !ignores_ranges_; }

 private:
  [[nodiscard]] bool is_directory() const noexcept { return file_name_.empty(); }
  [[nodiscard]] snapshot::File describe_file(const std::stop_token& stop) const;

  const std::string reference_;
  const net::Url url_;
  const std::string file_name_;  ///< of the one file; empty for a directory
  const Web web_;
  FirstAnswers first_answers_;
  std::atomic<bool> ignores_ranges_{false};
};

}  // namespace weightfs::source
