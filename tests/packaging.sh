# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of what users build and link: tools, a work folder, and what a check prints.
#
# CC, CXX, MESON, CMAKE, PKG_CONFIG, NM and READELF name the tools, which may be several words. What is missing is
# reported as SKIPPED; with CI=true that fails. The test ends with `exit $failed`.
# shellcheck shell=sh disable=SC2034,SC2086
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
    what=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        echo "ok: $what"
    else
        tail -20 "$work/log"
        fail "$what"
    fi
}

# refuses WHAT MESSAGE COMMAND...: the command must fail with the message
refuses() {
    what=$1
    message=$2
    shift 2
    if "$@" >"$work/log" 2>&1; then
        fail "$what is not refused"
    elif tr -s ' \n' ' ' <"$work/log" | grep -q -e "$message"; then
        echo "ok: $what is refused"
    else
        tail -20 "$work/log"
        fail "$what is refused with another message"
    fi
}

# functions SOURCE: of the API; the test `header` compares prefix.h with npuquant.h
functions() {
    sed -n 's/^#define \(npuq_[a-z_]*\) .*/\1/p' "$1/include/npuquant/prefix.h" | sort
}
