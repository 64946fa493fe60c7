// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "base/environment.hpp"

#include <string.h>  // explicit_bzero
#include <unistd.h>
#include <cstddef>
#include <cstring>
#include <memory>

namespace weightfs {

void hide_environment() {
  if (environ == nullptr) return;
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (; environ[count] != nullptr; ++count) bytes += std::strlen(environ[count]) + 1;

  auto entries = std::make_unique<char*[]>(count + 1);
  auto values = std::make_unique<char[]>(bytes);
  char* end = values.get();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = std::strlen(environ[i]) + 1;
    entries[i] = end;
    std::memcpy(end, environ[i], size);
    end += size;
  }
  char** const before = environ;
  // environ is the C library's, and refers to them from now on.
  environ = entries.release();
  values.release();
  for (std::size_t i = 0; i < count; ++i) {
    char* const equals = std::strchr(before[i], '=');
    if (equals != nullptr) ::explicit_bzero(equals + 1, std::strlen(equals + 1));
  }
}

}  // namespace weightfs
