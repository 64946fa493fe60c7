#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
#
# tests/run.sh [layers|format|build|unit|replay|mount|quickstart|bench|clang|asan|tsan|all]...      (default: all)
#
# Installs what the tests need, builds, runs the suites and ends with the line
# "N passed, N failed[, N skipped]". A suite that could not run counts as failed. The mount suites run
# in mount and process namespaces of their own: whatever goes wrong, nothing stays mounted or running.
# JOBS=N compiles and runs the mount suites with N processes (2 by default).
set -uo pipefail
cd "$(dirname "$0")/.."

# The system's own tools, whatever else stands first in the caller's PATH.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH LC_ALL=C.UTF-8
readonly kJobs=${JOBS:-2}
readonly kPython=/usr/bin/python3

passed=0 failed=0 skipped=0

# count PASSED FAILED SKIPPED
count() {
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + ${3:-0}))
}

# check NAME COMMAND...: one command is one test.
check() {
  local -r name=$1
  shift
  if "$@"; then count 1 0; else echo "FAILED: $name"; count 0 1; fi
}

# tally KIND FILE: adds what a result file says; one failure where there is none to read.
tally() {
  local numbers
  if numbers=$("$kPython" tests/tally.py "$@"); then
    # shellcheck disable=SC2086
    count $numbers
  else
    echo "FAILED: no results in $2"
    count 0 1
  fi
}

# compile DIR [MESON-OPTION...]: shows the output of a step only when it fails.
compile() {
  local -r dir=$1 log=$1/compile.log
  set -- "${@:2}" -Dwerror=true -Dunit_tests=enabled
  if [[ -e $dir/build.ninja ]]; then
    meson configure "$dir" "$@" >"$log" 2>&1
  else
    rm -rf "$dir"
    mkdir "$dir"
    meson setup "$dir" "$@" >"$log" 2>&1
  fi && ninja -C "$dir" -j "$kJobs" >>"$log" 2>&1 && return
  grep -E -A8 'error:|^FAILED|ERROR:' "$log" | head -100
  return 1
}

run_unit() {
  local -r dir=$1
  rm -f "$dir"/meson-logs/testlog.json
  meson test -C "$dir" --no-rebuild --num-processes 2 --print-errorlogs
  tally meson "$dir/meson-logs/testlog.json"
}

# isolated SECONDS COMMAND...: in mount and process namespaces of its own, where they can be had.
isolated() {
  local -r seconds=$1
  shift
  local isolate=(unshare --mount --pid --fork --kill-child --mount-proc)
  "${isolate[@]}" true 2>/dev/null || isolate=()
  # The shell stays the first process of the namespace, so that orphans are reaped.
  timeout -k 10 "$seconds" "${isolate[@]}" bash -c '"$@"; exit $?' isolated "$@" </dev/null
}

# run_mount DIR [PYTEST-OPTION...]
run_mount() {
  local -r dir=$1 results=$PWD/$1/mount.xml
  shift
  rm -f "$results"
  WEIGHTFS_BUILD=$PWD/$dir isolated "${MOUNT_TIMEOUT:-2400}" \
    "$kPython" -m pytest -p no:cacheprovider -q -n "$kJobs" \
    --durations=10 --junitxml="$results" "$@" tests/integration
  tally junit "$results"
}

stage_layers() {
  check layers.py tests/layers.py
  check "layers.py --self-test" tests/layers.py --self-test
}

stage_format() {
  local tool
  tool=$(compgen -c clang-format- | grep -E '^clang-format-[0-9]+$' | sort -t- -k3 -n | tail -1)
  # Releases format differently; the tree is kept in the form of this one.
  if [[ $tool != clang-format-19 ]]; then
    echo "skipped: the format is checked with clang-format-19"
    count 0 0 1
    return
  fi
  check format bash -c 'find src include tests examples -name "*.[ch]pp" -print0 |
    xargs -0r clang-format-19 --dry-run -Werror 2>&1 | head -40; exit "${PIPESTATUS[1]}"'
}

stage_build() { check "g++ build" compile build; }

stage_unit() { run_unit build; }

# Real traces that are not on this machine are skipped, with the reason: their data has no licence for
# redistribution, so it is not here. What is generated in their place always runs.
stage_replay() {
  local -r results=$PWD/build/replay.xml
  rm -f "$results"
  WEIGHTFS_BUILD=$PWD/build timeout -k 10 600 "$kPython" -m pytest -p no:cacheprovider -q -rs \
    --junitxml="$results" tests/replay </dev/null
  tally junit "$results"
}

stage_mount() { run_mount build; }

stage_quickstart() {
  check "quickstart without the package index" isolated 300 tests/quickstart.sh offline
  check quickstart isolated 300 tests/quickstart.sh
}

stage_bench() { check "bench --quick" isolated 300 tests/bench/run.py --quick; }

# clang_build DIR [MESON-OPTION...]: with the newest clang there is.
clang_build() {
  local tool
  tool=$(compgen -c clang++- | grep -E '^clang\+\+-[0-9]+$' | sort -t- -k2 -n | tail -1)
  local -r cxx=${tool:-clang++} dir=$1
  CC=${cxx/++/} CXX=$cxx check "$dir, by $cxx" compile "$@"
}

stage_clang() {
  clang_build build-clang
  run_unit build-clang
}

# The sanitizers are clang's: newer than those of g++ 12, and a second compiler's opinion of the same code.
readonly kSanitizers=(-Dbuildtype=plain -Dcpp_args='-O1 -g1 -fno-omit-frame-pointer' -Db_lundef=false)

# symbolizer: the newest there is, so that reports have names and lines.
symbolizer() {
  compgen -c llvm-symbolizer- | grep -E '^llvm-symbolizer-[0-9]+$' | sort -t- -k3 -n | tail -1 |
    xargs -r which
}

stage_asan() {
  clang_build build-asan "${kSanitizers[@]}" -Db_sanitize=address,undefined
  export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
  local -r names=$(symbolizer)
  [[ -z $names ]] || export ASAN_SYMBOLIZER_PATH=$names
  run_unit build-asan
  run_mount build-asan -m short
}

stage_tsan() {
  clang_build build-tsan "${kSanitizers[@]}" -Db_sanitize=thread
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  local -r names=$(symbolizer)
  [[ -z $names ]] || TSAN_OPTIONS+=:external_symbolizer_path=$names
  [[ ! -e tests/tsan.supp ]] || TSAN_OPTIONS+=:suppressions=$PWD/tests/tsan.supp
  run_unit build-tsan
  run_mount build-tsan -m stress
}

stage() {
  local -r name=$1 began=$SECONDS
  printf '\n== %s\n' "$name"
  "stage_$name"
  printf '== %s: %d s (so far %d passed, %d failed)\n' "$name" $((SECONDS - began)) "$passed" "$failed"
}

main() {
  local stages=() name
  [[ $# -gt 0 ]] || set -- all
  for name in "$@"; do
    case $name in
      all) stages+=(layers format build unit replay mount quickstart bench asan tsan) ;;
      unit | replay | mount | quickstart | bench)
        [[ " ${stages[*]-} " == *" build "* ]] || stages+=(build)
        stages+=("$name")
        ;;
      layers | format | build | clang | asan | tsan) stages+=("$name") ;;
      *)
        echo "usage: tests/run.sh [layers|format|build|unit|replay|mount|quickstart|bench|clang|asan|tsan|all]..." >&2
        exit 2
        ;;
    esac
  done
  if ! packaging/deps.sh build test quickstart bench hub; then
    echo "FAILED: packaging/deps.sh"
    count 0 1
  fi
  for name in "${stages[@]}"; do stage "$name"; done
  printf '\n%d passed, %d failed' "$passed" "$failed"
  [[ $skipped -eq 0 ]] || printf ', %d skipped' "$skipped"
  printf '\n'
  [[ $failed -eq 0 && $passed -gt 0 ]]
}

main "$@"
