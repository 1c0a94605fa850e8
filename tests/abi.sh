#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The exported symbols, their types and the layout of the public structures are those recorded in tests/npuquant.abi.
#
# usage: abi.sh source-directory            compare; any difference fails, additions too
#        abi.sh source-directory --record   write the record anew: after an intended change, see docs/stability.md
# Both take the build in `build`, or in the folder that NPUQ_BUILD names: the symbols are those of its library, the types
# those of the same library with debugging information, which the build has beside the tests.
# Needs libabigail (Debian: abigail-tools) and x86-64; skipped otherwise, which with CI=true is a failure.
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
    sed "s| path='[^']*/src/| path='src/|" "$work/now.abi" >"$recorded" # not of this machine
    exit
fi

# Of what libabigail calls harmless, a new enumerator is one.
compare() {
    abidiff --harmless "$1" "$work/now.abi"
}

compare "$recorded"

# A comparison that notices nothing would pass as well. must_notice WHAT SED-COMMAND: of a change to the record
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

# The types of two members, as the record numbers them.
type_of() {
    sed -n "s/.*<var-decl name='$1' type-id='\([^']*\)'.*/\1/p" "$recorded" | head -n 1
}
must_notice "another type of a member" "/<var-decl name='ndim'/s/'$(type_of ndim)'/'$(type_of shape)'/"
must_notice "a new enumerator" "/<enumerator name='NPUQ_BACKEND_NEON'/d"
must_notice "a new function" "/<elf-symbol name='npuq_version'/d"
must_notice "another version of the symbols" "s/version='NPUQUANT_0'/version='NPUQUANT_9'/"
echo "the ABI is the recorded one"
