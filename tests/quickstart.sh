#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
#
# tests/quickstart.sh [offline]
#
# Runs examples/quickstart.sh, shows what it prints, and looks at what it has left. With "offline" the package
# index is out of its reach. Best in mount and process namespaces of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly kWork=/var/tmp/weightfs-quickstart.  # how its directory's name begins

wrong() {
  echo "quickstart: $*"
  exit 1
}

leftovers() {
  grep -o "$kWork[^ ]*" /proc/self/mounts || true
  ls -d "$kWork"* 2>/dev/null || true
  pgrep -af "$kWork" || true
}

if [[ ${1:-} == offline ]]; then
  # What an earlier run has installed does not count, and nothing answers.
  export PIP_FORCE_REINSTALL=1 PIP_CONFIG_FILE=/dev/null PIP_INDEX_URL=http://127.0.0.1:9/ PIP_NO_CACHE_DIR=1
  unset PIP_EXTRA_INDEX_URL PIP_FIND_LINKS
fi

before=$(leftovers)
output=$(mktemp)
trap 'rm -f "$output"' EXIT
examples/quickstart.sh </dev/null 2>&1 | tee "$output" || wrong "it failed"

for row in 'mount: from the origin' 'mount: local store, cold page cache' 'mount: hot'; do
  grep -Eq "^  $row +[0-9]+\.[0-9]{3} s +[0-9]+ MB/s" "$output" || wrong "no time of '$row'"
done
if [[ ${1:-} == offline ]]; then
  grep -q 'a generated model' "$output" || wrong "the package index was not out of reach"
fi
[[ $(leftovers) == "$before" ]] || wrong "it has left: $(leftovers)"
