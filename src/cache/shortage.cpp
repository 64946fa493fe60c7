// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cache/shortage.hpp"

#include "base/quantity.hpp"

#include <fmt/format.h>

namespace weightfs::cache {

std::string describe_shortage(const policy::Plan& plan) {
  std::string text = fmt::format("{} {}", readable_size(plan.short_of),
                                 plan.over_cap ? "more than its tenant may have" : "too little");
  for (const auto& [guard, bytes] : plan.kept) {
    text += fmt::format(", {} {}", readable_size(bytes), policy::name(guard));
  }
  return text;
}

}  // namespace weightfs::cache
