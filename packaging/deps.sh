#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the weightfs authors
#
# packaging/deps.sh [build] [test] [quickstart] [bench] [hub]      (default: build)
#
# Installs what building, testing, the quickstart or the benchmark needs on Debian 12, Debian 13 or
# Ubuntu 24.04, with the system's apt and its package sources as they are; for `hub` also the client
# libraries that the tests of the model hub read with (hub.sh). Does nothing, quickly, where everything
# is there.
#
# Two libraries are needed newer than Debian 12 or Ubuntu 24.04 have them: libfuse (passthrough) and
# Catch2 v3. There, the source package of a newer suite of the same mirror, or else of Debian's archive,
# is unpacked below subprojects/, from where meson builds it as a static library inside the build tree.
# That goes through an apt configuration of its own in a temporary directory: no package source of the
# system, none of its package lists, keys and installed packages changes.
set -euo pipefail

readonly kRoot=$(cd "$(dirname "$0")/.." && pwd)
readonly kFuseMinimum=3.17.2
readonly kCatchMinimum=3.0

readonly kBuild=(g++ meson ninja-build pkg-config liburing-dev libssl-dev nlohmann-json3-dev
  libcli11-dev libfmt-dev libspdlog-dev libcurl4-openssl-dev libsqlite3-dev libmicrohttpd-dev
  zlib1g-dev)
readonly kTest=(nginx python3 python3-pytest python3-pytest-xdist python3-venv aria2 attr e2fsprogs xfsprogs
  util-linux procps strace openssl ca-certificates)
readonly kQuickstart=(nginx python3 python3-venv util-linux ca-certificates)
readonly kBench=(nginx python3 python3-venv aria2 util-linux ca-certificates)
readonly kHub=(git python3 python3-venv util-linux ca-certificates)
readonly kClang=(19 18 17 16)  # the first of them that the distribution has

say() { printf 'deps: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }
available() { apt-cache show --no-all-versions "$1" >/dev/null 2>&1; }
version_of() { dpkg-query -W -f '${Version}' "$1"; }
at_least() { dpkg --compare-versions "$1" ge "$2"; }

# Package lists are refreshed at most once, and only when something is missing.
refresh_lists() {
  [[ -z ${lists_fresh:-} ]] || return 0
  [[ $EUID -eq 0 ]] || die "run as root: packages are missing ($*)"
  say "apt-get update"
  apt-get update -qq || die "apt-get update failed: is a package mirror within reach?"
  lists_fresh=1
}

# Services of new packages (nginx) are neither started now nor at the next boot: only its program is
# wanted here. A policy-rc.d that the machine has already is left alone.
install_packages() {
  local -r policy=/usr/sbin/policy-rc.d
  local nginx_is_new= policy_is_ours= package
  for package in "$@"; do [[ $package == nginx ]] && nginx_is_new=1; done
  installed nginx-common && nginx_is_new=
  if [[ -n $nginx_is_new && ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    policy_is_ours=1
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  say "installing $*"
  local status=0
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Use-Pty=0 "$@" >&2 </dev/null || status=$?
  if [[ -n $policy_is_ours ]]; then
    rm -f "$policy"
    trap - EXIT
  fi
  if [[ -n $nginx_is_new ]] && installed nginx; then
    systemctl disable --quiet nginx 2>/dev/null ||
      rm -f /etc/systemd/system/multi-user.target.wants/nginx.service
  fi
  [[ $status -eq 0 ]] || die "apt-get install failed"
}

# The newer suites of this distribution, nearest first. The keys of the system decide which of them
# apt accepts: a suite signed by none of them is passed over. (A suite is signed with the keys of its
# own release and of the one before it, so Debian 12's first keyring verifies trixie.)
newer_suites() {
  case $ID in
    debian) local -r order=(bookworm trixie forky sid) ;;
    # The releases between the long-term ones leave the mirrors after nine months.
    ubuntu) local -r order=(noble resolute devel) ;;
    *) die "this is $ID: install libfuse >= $kFuseMinimum and Catch2 v3 by hand" ;;
  esac
  local suite passed=
  for suite in "${order[@]}"; do
    [[ -n $passed ]] && echo "$suite"
    [[ $suite == "$VERSION_CODENAME" ]] && passed=1
  done
  return 0
}

# "URI SIGNED-BY" of the distribution's own archive, as apt itself understands its configuration.
archive_of_system() {
  apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|$(RELEASE)|$(REPO_URI)|$(SIGNED_BY)' \
    'Identifier: Packages' |
    awk -F'|' -v origin="$ID" -v codename="$VERSION_CODENAME" '
      tolower($1) == origin && $2 == codename && $3 !~ /-/ { print $4, $5; exit }'
}

# A temporary apt configuration that knows nothing but the sources of one suite. Proxy, credentials
# and keyrings stay the system's; hooks of the system do not run, as nothing of it changes.
write_private_apt() {
  local -r dir=$1 uri=$2 signed_by=$3 suite=$4
  mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
  local option=
  [[ $signed_by == /* ]] && option="[signed-by=${signed_by// /,}] "
  local components=main
  [[ $uri == *ubuntu* ]] && components='main universe'
  echo "deb-src $option$uri $suite $components" >"$dir/sources.list"
  cat >"$dir/apt.conf" <<CONF
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "$dir/lists";
Dir::Cache "$dir/cache";
Acquire::Languages "none";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
CONF
}

# unpack_source PACKAGE VERSION FOLDER DIR: apt checks the download against the signed lists. Fails where
# the mirror does not have what its lists promise.
unpack_source() {
  local -r package=$1 version=$2 folder=$3 dir=$4
  local -r staging=$kRoot/subprojects/.$folder.$$
  mkdir -p "$dir/$package" "$kRoot/subprojects"
  if [[ $EUID -eq 0 ]] && id _apt >/dev/null 2>&1; then chown _apt "$dir/$package"; fi
  (cd "$dir/$package" &&
    APT_CONFIG=$dir/apt.conf apt-get source -qq --only-source --download-only "$package=$version" >&2) ||
    return 1
  dpkg-source --no-check --no-copy -x "$dir/$package"/*.dsc "$staging" >/dev/null || return 1
  echo "$version" >"$staging/.source-version"
  [[ ! -d $kRoot/packaging/$folder ]] || cp -r "$kRoot/packaging/$folder/." "$staging/"
  chown -R --reference="$kRoot" "$staging"
  rm -rf "$kRoot/subprojects/$folder"
  mv "$staging" "$kRoot/subprojects/$folder"
  chown --reference="$kRoot" "$kRoot/subprojects"
  say "unpacked $package $version to subprojects/$folder"
}

# fetch_from URI SIGNED-BY SUITE: takes out of `pending` (PACKAGE:MINIMUM:FOLDER...) what the suite has.
fetch_from() {
  local -r uri=$1 signed_by=$2 suite=$3 dir=$scratch/$3
  local item package minimum folder version
  local remaining=()
  write_private_apt "$dir" "$uri" "$signed_by" "$suite"
  say "looking for ${pending[*]} in $suite"
  APT_CONFIG=$dir/apt.conf apt-get update -qq --error-on=any >&2 || return 0
  for item in "${pending[@]}"; do
    IFS=: read -r package minimum folder <<<"$item"
    version=$(APT_CONFIG=$dir/apt.conf apt-cache showsrc --only-source "$package" 2>/dev/null |
      awk '$1 == "Version:" { print $2; exit }')
    if [[ -z $version ]] || ! at_least "$version" "$minimum" ||
      ! unpack_source "$package" "$version" "$folder" "$dir"; then
      remaining+=("$item")
    fi
  done
  pending=(${remaining[@]+"${remaining[@]}"})
}

# Prints where Debian's keys are: from the package that has them, which is unpacked and not installed,
# or the system's apt would trust them, too.
debian_keyring() {
  local -r dir=$scratch/keyring
  mkdir "$dir"
  chmod 777 "$dir"
  (cd "$dir" && apt-get download -qq debian-archive-keyring >&2) || return 1
  dpkg-deb -x "$dir"/*.deb "$dir" && echo "$dir/usr/share/keyrings/debian-archive-keyring.gpg"
}

# fetch_sources PACKAGE:MINIMUM:FOLDER...
fetch_sources() {
  pending=("$@")
  installed dpkg-dev || { refresh_lists dpkg-dev; install_packages dpkg-dev; }
  local archive keyring suite
  archive=$(archive_of_system)
  [[ -n $archive ]] || { refresh_lists "${pending[@]}"; archive=$(archive_of_system); }
  [[ -n $archive ]] || die "found no archive of $ID $VERSION_CODENAME in apt's configuration"
  local -r uri=${archive%% *} signed_by=${archive#* }

  scratch=$(mktemp -d)
  chmod 755 "$scratch"
  trap 'rm -rf "$scratch" "$kRoot"/subprojects/.*."$$"' EXIT
  for suite in $(newer_suites); do
    [[ ${#pending[@]} -eq 0 ]] || fetch_from "$uri" "$signed_by" "$suite"
  done
  if [[ ${#pending[@]} -gt 0 && $ID != debian ]] && keyring=$(debian_keyring); then
    fetch_from http://deb.debian.org/debian "$keyring" trixie
  fi
  rm -rf "$scratch"
  trap - EXIT
  [[ ${#pending[@]} -eq 0 ]] || die "no newer suite within reach has ${pending[*]}"
}

# One library that may have to come from a newer suite: library DEV-PACKAGE SOURCE MINIMUM FOLDER.
# Adds to `wanted` what apt installs, to `sources` what has to be unpacked.
library() {
  local -r dev=$1 source=$2 minimum=$3 folder=$4
  if installed "$dev" && at_least "$(version_of "$dev")" "$minimum"; then return; fi
  local -r stamp=$kRoot/subprojects/$folder/.source-version
  if [[ -r $stamp ]] && at_least "$(<"$stamp")" "$minimum"; then return; fi
  refresh_lists "$dev"
  local candidate
  candidate=$(apt-cache policy "$dev" | awk '$1 == "Candidate:" { print $2 }')
  if [[ -n $candidate && $candidate != '(none)' ]] && at_least "$candidate" "$minimum"; then
    wanted+=("$dev")
  else
    sources+=("$source:$minimum:$folder")
  fi
}

# Adds the newest clang to `wanted` where there is none: with the clang-format, the sanitizers and the
# symbolizer (llvm, names in their reports) of the same release.
clang() {
  local release
  for release in "${kClang[@]}"; do
    if installed "clang-$release" && installed "clang-format-$release" &&
      installed "libclang-rt-$release-dev" && installed "llvm-$release"; then return; fi
  done
  refresh_lists clang
  for release in "${kClang[@]}"; do
    if available "clang-$release"; then
      wanted+=("clang-$release" "clang-format-$release" "libclang-rt-$release-dev" "llvm-$release")
      return
    fi
  done
  die "found no clang among ${kClang[*]}"
}

main() {
  local group package
  local packages=()
  wanted=() sources=()
  [[ $# -gt 0 ]] || set -- build
  for group in "$@"; do
    case $group in
      build) packages+=("${kBuild[@]}") ;;
      test) packages+=("${kTest[@]}") ;;
      quickstart) packages+=("${kQuickstart[@]}") ;;
      bench) packages+=("${kBench[@]}") ;;
      hub) packages+=("${kHub[@]}") ;;
      *) die "usage: packaging/deps.sh [build] [test] [quickstart] [bench] [hub]" ;;
    esac
  done
  . /etc/os-release

  for package in "${packages[@]}"; do installed "$package" || wanted+=("$package"); done
  for group in "$@"; do
    case $group in
      build) library libfuse3-dev fuse3 "$kFuseMinimum" libfuse ;;
      test)
        library catch2 catch2 "$kCatchMinimum" catch2
        clang
        ;;
    esac
  done
  if [[ ${#wanted[@]} -gt 0 ]]; then
    refresh_lists "${wanted[@]}"
    install_packages "${wanted[@]}"
  fi
  [[ ${#sources[@]} -eq 0 ]] || fetch_sources "${sources[@]}"
  [[ " $* " != *" hub "* ]] || "$kRoot/packaging/hub.sh"
}

main "$@"
