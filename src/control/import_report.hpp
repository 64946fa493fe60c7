// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/synchronized.hpp"
#include "fetch/importer.hpp"
#include "weightfs/values.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace weightfs::control {

/// What an import found, told file by file. Thread-safe. `tree` must outlive it.
class ImportReport {
 public:
  /// `file_name` gives "name/path" of a target.
  ImportReport(const source::LocalTree& tree,
               std::function<std::string(const fetch::Target&)> file_name);

  void add(const source::LocalTree::Listing& listing);
  void add(const fetch::Importer::Imported& imported);

  [[nodiscard]] api::ImportResult result() const {
    return result_.with([](const api::ImportResult& result) { return result; });
  }

 private:
  void note_fault(const std::string& path, const Error& error);

  const source::LocalTree& tree_;
  const std::function<std::string(const fetch::Target&)> file_name_;
  Synchronized<api::ImportResult> result_;
};

}  // namespace weightfs::control
