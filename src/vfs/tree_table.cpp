// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "vfs/tree_table.hpp"

#include "base/error.hpp"
#include "vfs/node_id.hpp"

namespace weightfs::vfs {

namespace {

// "tree <kind> <key> <path>"; the number is the position among such records.
constexpr std::string_view kPrefix = "tree ";

std::string to_record(const TreeTable::Tree& tree) {
  std::string record(kPrefix);
  record += static_cast<char>(tree.kind);
  return record + " " + tree.key.hex() + " " + tree.path;
}

std::optional<TreeTable::Tree> from_record(std::string_view record) {
  constexpr std::size_t kKey = kPrefix.size() + 2;
  constexpr std::size_t kPath = kKey + 2 * Digest::kSize + 1;
  if (!record.starts_with(kPrefix) || record.size() < kPath) return std::nullopt;
  const auto key = Digest::parse(record.substr(kKey, 2 * Digest::kSize));
  if (!key) return std::nullopt;
  return TreeTable::Tree{static_cast<TreeTable::Kind>(record[kPrefix.size()]),
                         std::string(record.substr(kPath)), *key};
}

}  // namespace

TreeTable::TreeTable(SessionLog& log) : log_(log) {
  state_.with([&](State& state) {
    for (const std::string& record : log_.records()) {
      auto tree = from_record(record);
      if (!tree) continue;
      state.numbers.emplace(*tree, static_cast<std::uint32_t>(state.trees.size()));
      state.trees.push_back(*std::move(tree));
    }
  });
  number_of({Kind::kNamespace, "", {}});  // the root must be number 0
}

std::optional<TreeTable::Tree> TreeTable::find(std::uint32_t number) const {
  return state_.with([&](const State& state) -> std::optional<Tree> {
    if (number >= state.trees.size()) return std::nullopt;
    return state.trees[number];
  });
}

std::uint32_t TreeTable::number_of(const Tree& tree) {
  return state_.with([&](State& state) {
    const auto known = state.numbers.find(tree);
    if (known != state.numbers.end()) return known->second;
    const auto number = static_cast<std::uint32_t>(state.trees.size());
    if (number >= 1U << NodeId::kTreeBits) {
      throw Error(Errc::kNoSpace, "this mount has shown as many trees as node ids can number");
    }
    log_.append(to_record(tree));  // a store to memory, no I/O
    state.trees.push_back(tree);
    state.numbers.emplace(tree, number);
    return number;
  });
}

}  // namespace weightfs::vfs
