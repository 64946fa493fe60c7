#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
#
# packaging/hub.sh [FOLDER]
#
# Makes the Python environments that the tests of the model hub use, below FOLDER (default: $WEIGHTFS_HUB or
# /var/cache/weightfs-tests/hub), where any user can run them: FOLDER/0.36/bin/python and so on. Three have
# a release of the hub's own client library each, the newest of them with transformers; one has an
# independent server of the hub's protocol. Does nothing, quickly, where everything is there. Packages come
# from where pip gets them on this machine.
set -euo pipefail

readonly kFolder=${1:-${WEIGHTFS_HUB:-/var/cache/weightfs-tests/hub}}
readonly kPython=/usr/bin/python3

# NAME REQUIREMENT...: raise those of the newest as releases come.
readonly kEnvironments=(
  '0.36 huggingface_hub==0.36.2'
  '1.24 huggingface_hub==1.24.0'
  'newest huggingface_hub==2.4.0 transformers==5.24.0 torch==2.15.0'
  'olah olah==0.5.4'
)
# Only a compiler for accelerators: a fifth of torch's size, and never loaded without one.
readonly kUnwanted='triton; sys_platform == "never"'

say() { printf 'hub: %s\n' "$*" >&2; }

# ready NAME WHAT: was this very environment completed?
ready() { [[ -x $kFolder/$1/bin/python && $(cat "$kFolder/$1/ready" 2>/dev/null) == "$2" ]]; }

# uv installs what pip would, in a fifth of the time.
installer() {
  [[ -x $kFolder/uv/bin/uv ]] && return
  "$kPython" -m venv --clear "$kFolder/uv"
  "$kFolder/uv/bin/python" -m pip install -q --disable-pip-version-check --no-compile uv
}

# The index that pip is set up to use, where it is not its own default.
index() {
  "$kFolder/uv/bin/python" -m pip config get global.index-url 2>/dev/null || echo "${PIP_INDEX_URL:-}"
}

make() {
  local -r name=$1 what=$2
  shift 2
  say "making $name: $*"
  rm -f "$kFolder/$name/ready"
  "$kPython" -m venv --clear --without-pip "$kFolder/$name"
  "$kFolder/uv/bin/uv" pip install -q --python "$kFolder/$name/bin/python" --compile-bytecode \
    --override <(echo "$kUnwanted") "$@"
  echo "$what" >"$kFolder/$name/ready"
}

main() {
  local environment name requirements url
  umask 022
  mkdir -p "$kFolder"
  exec 9>"$kFolder/.lock"
  flock 9
  for environment in "${kEnvironments[@]}"; do
    read -r name requirements <<<"$environment"
    local what
    what="$requirements; $("$kPython" -V)"
    ready "$name" "$what" && continue
    installer
    url=$(index)
    export UV_CACHE_DIR=$kFolder/.cache UV_NO_CONFIG=1 UV_PYTHON_DOWNLOADS=never
    # The system's authorities, as pip may be set up to use, and not those that uv brings along.
    export SSL_CERT_FILE=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
    [[ -z $url ]] || export UV_DEFAULT_INDEX=$url
    # shellcheck disable=SC2086
    make "$name" "$what" $requirements
  done
  rm -rf "$kFolder/.cache"  # the environments' files were links into it
}

main
