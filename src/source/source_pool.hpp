// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once
#include "source/source.hpp"
namespace weightfs::source {
class SourcePool { public: SourcePtr get(const std::string& reference); };
}
