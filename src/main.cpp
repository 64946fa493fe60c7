// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/weightfs_main.hpp"

int main(int argc, char** argv) {
  return weightfs::cli::weightfs_main(argc, argv);
}
