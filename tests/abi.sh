#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The exported symbols, their types and the layout of the public structures are those recorded in tests/npuquant.abi.
#
# usage: abi.sh source-directory            compare; any difference fails, additions too
#        abi.sh source-directory --record   write the record anew: after an intended change, see docs/stability.md
# Needs libabigail (Debian: abigail-tools) and x86-64; skipped otherwise, which with CI=true is a failure.
set -eu

source=$1
recorded=$source/tests/npuquant.abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
    echo "SKIPPED: $*"
    [ "${CI:-}" = true ] && exit 1
    exit 77
}

command -v abidw >/dev/null 2>&1 || skip "no abidw and abidiff (libabigail)"
# shellcheck disable=SC2086
[ "$(${CC:-cc} -dumpmachine | cut -d- -f1)" = x86_64 ] || skip "the record is of x86-64"

# library SOURCE OUTPUT: the portable part with debugging information; the backends export nothing
library() {
    # shellcheck disable=SC2086
    find "$1/src" -name '*.c' ! -path '*/ref/*' ! -path '*/simd/*' -exec ${CC:-cc} -g -O1 -shared -fPIC \
        -fvisibility=hidden -std=c11 -ffp-contract=off -DNPUQ_BUILDING -I"$1/include" \
        -Wl,-soname,libnpuquant.so -o "$2" {} +
}

# description LIBRARY HEADERS OUTPUT
description() {
    abidw --headers-dir "$2" --drop-private-types --drop-undefined-syms --no-corpus-path --no-comp-dir-path \
        --no-show-locs --no-elf-needed --out-file "$3" "$1"
}

library "$source" "$work/libnpuquant.so"
description "$work/libnpuquant.so" "$source/include/npuquant" "$work/now.abi"
if [ "${2:-}" = --record ]; then
    cp "$work/now.abi" "$recorded"
    exit
fi
# Of what libabigail calls harmless, a new enumerator is one.
compare() {
    abidiff --harmless "$recorded" "$1"
}

compare "$work/now.abi"

# A record that notices nothing would pass as well. must_notice WHAT SED-COMMAND: of a change to the header
must_notice() {
    rm -rf "$work/changed"
    mkdir -p "$work/changed/src"
    cp -r "$source/include" "$work/changed/"
    cp -r "$source/src/." "$work/changed/src/"
    header=npuquant/npuquant.h
    sed "$2" "$source/include/$header" >"$work/changed/include/$header"
    if cmp -s "$source/include/$header" "$work/changed/include/$header"; then
        echo "$1: nothing to change was found"
        exit 1
    fi
    library "$work/changed" "$work/changed.so" 2>"$work/log" || { cat "$work/log" && exit 1; }
    description "$work/changed.so" "$work/changed/include/npuquant" "$work/changed.abi"
    if compare "$work/changed.abi" >/dev/null; then
        echo "$1 was not noticed"
        exit 1
    fi
}

must_notice "a wider member" 's/^    int32_t ndim;/    int64_t ndim;/'
must_notice "a new enumerator" 's/^    NPUQ_BACKEND_REF = 0,/&NPUQ_BACKEND_NEW = 9,/'
echo "the ABI is the recorded one"
