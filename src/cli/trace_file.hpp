// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "policy/csv_rows.hpp"
#include "policy/trace.hpp"

#include <filesystem>

namespace weightfs::cli {

/// Reads a trace (policy/trace_parser.hpp), plain or gzip. Error, with the file's name: kNotFound,
/// kPermission, kIo; kCorrupt where the compressed bytes are; kInvalid where it is no trace.
[[nodiscard]] policy::Trace read_trace_file(const std::filesystem::path& path,
                                            const policy::CsvColumns& columns);

}  // namespace weightfs::cli
