// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <string>
#include <string_view>

namespace weightfs {

/// What git calls a blob with this content: the SHA-1 over "blob", its length and its bytes, as 40
/// hexadecimal digits (gitformat-loose(5)). SHA-1 is no proof against who wants to deceive: enough
/// to tell that a file came over as it is in its repository, never what a store goes by.
[[nodiscard]] std::string git_blob_id(std::string_view content);

}  // namespace weightfs
