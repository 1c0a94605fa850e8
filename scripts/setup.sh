# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the other scripts: changes to the top of the source tree, and has functions that choose the build folder,
# install missing packages and set up the build.
# shellcheck shell=sh disable=SC2034,SC2154
started_in=$PWD
cd "$(dirname "$0")/.." || exit 1

# build_in FOLDER: the build folder, relative to the folder where the script started; default: ./build of the source
build_in() {
    case ${1:-} in
    -*)
        echo "usage: $0 [FOLDER]     FOLDER: where to build; otherwise the folder build of the source tree" >&2
        exit 2
        ;;
    "") build=$PWD/build ;;
    /*) build=$1 ;;
    *) build=$started_in/$1 ;;
    esac
    if ! mkdir -p "$build" 2>/dev/null || ! [ -w "$build" ]; then
        echo "The folder $build cannot be written. Name another to build in: $0 FOLDER" >&2
        exit 1
    fi
    tool=$build/npuquant
}

# quietly LOG COMMAND...: writes the output to a file; if the command fails, shows the file and exits
quietly() {
    log=$1
    shift
    if ! "$@" >"$log" 2>&1; then
        tail -60 "$log"
        echo "FAILED: $*" >&2
        exit 1
    fi
}

# have COMMAND...: all commands are there
have() {
    for command in "$@"; do
        command -v "$command" >/dev/null 2>&1 || return 1
    done
}

# some_python_runs CODE: the first Python in PATH does, or that of the packages, which may be another
some_python_runs() {
    python3 -c "$1" 2>/dev/null || /usr/bin/python3 -c "$1" 2>/dev/null
}

# has_package_needs: a Python has NumPy and its C headers
has_package_needs() {
    some_python_runs 'import numpy, os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")'
}

has_compiler() {
    have cc || have gcc || have clang
}

# as_root COMMAND...: with sudo where needed
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        echo "This needs root, and there is no sudo: $*" >&2
        return 1
    fi
}

# With an old index, apt might remove other packages: not with --no-remove.
apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-remove --no-install-recommends "$@" >/dev/null
}

# install_packages PACKAGES: on Debian and Ubuntu; elsewhere prints the names and goes on, since the tools may be there
install_packages() {
    if ! have apt-get; then
        echo "This script installs packages on Debian and Ubuntu only. If something is missing below (untried):"
        echo "  Fedora:  dnf install gcc meson ninja-build libcmocka-devel python3-numpy pkgconf"
        echo "  Arch:    pacman -S gcc meson ninja cmocka python-numpy pkgconf"
        echo "  Alpine:  apk add gcc musl-dev meson ninja cmocka-dev py3-numpy pkgconf"
        echo "  macOS:   brew install meson ninja cmocka numpy pkgconf"
        return 0
    fi
    echo "installing $*"
    if ! apt_install "$@" 2>/dev/null && ! { as_root apt-get update -qq && apt_install "$@"; }; then
        echo "These packages are needed, and this script could not install them: $*" >&2
        exit 1
    fi
}

# configure TESTS: sets up the build with or without tests, and with asserts; an existing build keeps its other options
configure() {
    if ! [ -f "$build/build.ninja" ]; then
        quietly "$build/setup.log" meson setup "$build" -Dtests="$1" -Dpython=enabled -Db_ndebug=false
    elif [ "$1" = true ]; then
        meson configure "$build" -Dtests=true -Db_ndebug=false
    fi
}

# compile WHAT [TARGETS]: prints WHAT and the time taken
compile() {
    what=$1
    shift
    started=$(date +%s)
    printf 'building %s in %s ... ' "$what" "$build"
    quietly "$build/compile.log" ninja -C "$build" "$@"
    echo "$(($(date +%s) - started)) s"
}

# Other builds are in $work, a folder that the script chooses.

# set_up NAME COMPILER [MESON OPTIONS]: configures $work/NAME, with asserts if no option says otherwise
set_up() {
    name=$1
    compiler=$2
    shift 2
    quietly "$work/$name.log" env CC="$compiler" meson setup "$work/$name" . -Db_ndebug=false "$@"
}

# run_tests_of NAME [MESON OPTIONS OR TESTS]: builds and runs the tests
run_tests_of() {
    name=$1
    shift
    quietly "$work/$name.test" meson test -C "$work/$name" --print-errorlogs "$@"
    grep -E '^(Ok|Fail|Skipped):' "$work/$name.test" | tr -s ' ' | paste -sd ' ' -
}

# nothing_left_out FOLDER: fails if a test was not built because a tool or asserts are missing
nothing_left_out() {
    if grep -E "^SKIPPED: (not built|asserts are off)|^SKIPPED .*no (pip|mesonpy)" "$1/meson-logs/testlog.txt"; then
        exit 1
    fi
}
