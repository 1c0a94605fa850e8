#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Compares the exported symbols, their types and the layout of the public structures with tests/npuquant.abi.
#
# usage: abi.sh source-directory            compare; any difference fails, also an addition
#        abi.sh source-directory --record   write the record after an intended change, see docs/stability.md
# Takes the build in `build`, or in the folder that NPUQ_BUILD names: the symbols of its library, and the types of the
# same library with debugging information, which the build makes for tests.
# Needs libabigail (Debian: abigail-tools) and x86-64; skipped otherwise, which fails with CI=true.
set -eu

source=$1
build=${NPUQ_BUILD:-$source/build}
recorded=$source/tests/npuquant.abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
    echo "SKIPPED: $*"
    [ "${CI:-}" = true ] && exit 1
    exit 77
}

command -v abidw >/dev/null 2>&1 || skip "no abidw and abidiff (libabigail)"
[ -e "$build/tests/libnpuquant.so" ] || skip "no $build/tests/libnpuquant.so, which is built on x86-64 where abidw is"

# description LIBRARY OUTPUT
description() {
    abidw --headers-dir "$source/include/npuquant" --drop-private-types --drop-undefined-syms --no-corpus-path \
        --no-comp-dir-path --no-show-locs --no-elf-needed --out-file "$2" "$1"
}

# symbols DESCRIPTION: with their versions, and the soname
symbols() {
    grep -E '<(abi-corpus|elf-symbol) ' "$1"
}

description "$build/tests/libnpuquant.so" "$work/now.abi"
description "$build/src/libnpuquant.so" "$work/library.abi"
symbols "$work/now.abi" >"$work/now.symbols"
if ! symbols "$work/library.abi" | diff "$work/now.symbols" -; then
    echo "the library (>) has other symbols than with debugging information (<)"
    exit 1
fi
if [ "${2:-}" = --record ]; then
    sed "s| path='[^']*/src/| path='src/|" "$work/now.abi" >"$recorded" # without this machine's path
    exit
fi

# --harmless: libabigail calls a new enumerator harmless.
compare() {
    abidiff --harmless "$1" "$work/now.abi"
}

compare "$recorded"

# Guards against a comparison that notices nothing. must_notice WHAT SED-COMMAND: a change of the record
must_notice() {
    sed "$2" "$recorded" >"$work/changed.abi"
    if cmp -s "$recorded" "$work/changed.abi"; then
        echo "$1: nothing to change was found"
        exit 1
    fi
    if compare "$work/changed.abi" >/dev/null; then
        echo "$1 was not noticed"
        exit 1
    fi
}

# The type of two members, as the record numbers types.
type_of() {
    sed -n "s/.*<var-decl name='$1' type-id='\([^']*\)'.*/\1/p" "$recorded" | head -n 1
}
must_notice "another type of a member" "/<var-decl name='ndim'/s/'$(type_of ndim)'/'$(type_of shape)'/"
must_notice "a new enumerator" "/<enumerator name='NPUQ_BACKEND_NEON'/d"
must_notice "a new function" "/<elf-symbol name='npuq_version'/d"
must_notice "another version of the symbols" "s/version='NPUQUANT_0'/version='NPUQUANT_9'/"
echo "the ABI is the recorded one"
