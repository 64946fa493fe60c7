// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/freed_text.hpp"

#include "base/quantity.hpp"
#include "cli/printable.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

void print_freed(Context& context, const api::Freed& freed, std::string_view verb,
                 std::string_view participle) {
  if (context.json()) {
    context.print_json(control::to_json(freed));
  } else {
    context.streams().out << freed_text(freed, verb, participle) << '\n';
  }
}

std::string freed_text(const api::Freed& freed, std::string_view verb,
                       std::string_view participle) {
  const auto files = [](std::uint64_t count) {
    return fmt::format("{} {}", count, count == 1 ? "file" : "files");
  };
  std::string text = printable(freed.name);
  if (freed.dry_run) {
    text += fmt::format(": would {}, and free {} and {}", verb, files(freed.blobs),
                        readable_size(freed.bytes));
  } else {
    text += fmt::format(": {}, {} and {} freed", participle, files(freed.blobs),
                        readable_size(freed.bytes));
  }
  if (freed.shared_blobs > 0) {
    text +=
        fmt::format("; {} ({}) {}, another model has {} too", files(freed.shared_blobs),
                    readable_size(freed.shared_bytes), freed.shared_blobs == 1 ? "stays" : "stay",
                    freed.shared_blobs == 1 ? "it" : "them");
  }
  return text;
}

}  // namespace weightfs::cli
