# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of what users build and link: tools, a work folder, and what a check prints.
#
# CC, CXX, MESON, CMAKE, PKG_CONFIG, NM and READELF name the tools, which may be several words. What is missing is
# reported as SKIPPED; with CI=true that fails. The test ends with `exit $failed`.
# shellcheck shell=sh disable=SC2034,SC2086,SC2154
cc=${CC:-cc}
cxx=${CXX:-c++}
meson=${MESON:-meson}
cmake=${CMAKE:-cmake}
pkg_config=${PKG_CONFIG:-pkg-config}
nm=${NM:-nm}
readelf=${READELF:-readelf}
failed=0

unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS DESTDIR MAKEFLAGS CMAKE_PREFIX_PATH PKG_CONFIG_PATH LD_LIBRARY_PATH NPUQ_BACKEND
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

skip() {
    echo "SKIPPED: $*"
    [ "${CI:-}" != true ] || failed=1
}

# skip_all WHY: nothing at all can be tried
skip_all() {
    skip "$@"
    [ $failed = 0 ] || exit 1
    exit 77
}

fail() {
    echo "FAILED: $*"
    failed=1
}

# have COMMAND: the command, perhaps of several words, is there
have() {
    $1 --version >/dev/null 2>&1
}

# check WHAT COMMAND...: shows the end of the output of a command that fails
check() {
    checked=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        echo "ok: $checked"
    else
        tail -20 "$work/log"
        fail "$checked"
    fi
}

# quietly COMMAND...: all that follows needs the command
quietly() {
    if ! "$@" >"$work/log" 2>&1; then
        cat "$work/log"
        fail "$*"
        exit 1
    fi
}

# refuses WHAT MESSAGE COMMAND...: the command must fail with the message
refuses() {
    refused=$1
    message=$2
    shift 2
    if "$@" >"$work/log" 2>&1; then
        fail "$refused is not refused"
    elif tr -s ' \n' ' ' <"$work/log" | grep -q -e "$message"; then
        echo "ok: $refused is refused"
    else
        tail -20 "$work/log"
        fail "$refused is refused with another message"
    fi
}

# What follows wants the variable source, the top of the source tree.

version() {
    sed -n 's/^#define NPUQ_VERSION "\(.*\)"$/\1/p' "$source/include/npuquant/version.h"
}

# The functions of the API. The test `header` compares prefix.h with npuquant.h.
functions() {
    sed -n 's/^#define \(npuq_[a-z0-9_]*\) .*/\1/p' "$source/include/npuquant/prefix.h" | sort
}

# exports FILE: the library's names that it exports
exports() {
    $nm -D --defined-only "$1" | awk '{ print $3 }' | grep npuq_
}

# exports_nothing FILE
exports_nothing() {
    if exports "$1"; then
        fail "${1##*/} exports functions of npuquant (above)"
    else
        echo "ok: ${1##*/} exports nothing of npuquant"
    fi
}

only_library="-Dtests=false -Dpython=disabled -Dbench=false -Dexamples=false"

# meson_installs NAME MESON-OPTIONS...: the library alone, moved to $work/NAME after the installation
meson_installs() {
    tree=$1
    shift
    quietly $meson setup "$work/$tree-build" "$source" --prefix=/usr $only_library "$@"
    quietly env DESTDIR="$work/$tree-destination" $meson install -C "$work/$tree-build"
    mv "$work/$tree-destination/usr" "$work/$tree"
}

# program_runs COMPILER FLAGS AND FILES...: compiles and runs a program
program_runs() {
    "$@" -o "$work/consumer" && "$work/consumer"
}

# pkg_config_runs WHAT FOLDER PKG-CONFIG-FLAGS...: a C and a C++ program, with the libraries in $work/FOLDER
pkg_config_runs() {
    linked=$1
    libdir=$work/$2
    shift 2
    if ! have "$pkg_config"; then
        skip "pkg-config, $linked: no $pkg_config"
        return
    fi
    flags=$(PKG_CONFIG_PATH=$libdir/pkgconfig $pkg_config "$@" --cflags --libs npuquant)
    export LD_LIBRARY_PATH="$libdir"
    check "C program, pkg-config, $linked" \
        program_runs $cc -std=c99 -Wall -Wextra -Werror "$source/tests/consumer.c" $flags
    # -x holds for all later files: "-x none" ends it before pkg-config's files. With -O2 some functions are inline.
    if have "$cxx"; then
        check "C++ program, pkg-config, $linked" program_runs \
            $cxx -std=c++11 -O2 -Wall -Wextra -Werror -x c++ "$source/tests/consumer.c" -x none $flags
    else
        skip "C++ program, pkg-config, $linked: no compiler ($cxx)"
    fi
    unset LD_LIBRARY_PATH
}
