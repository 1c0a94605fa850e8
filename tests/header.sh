#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each public header compiles by itself, twice over and without a warning, as C and as C++.
#
# usage: header.sh include-directory
# CC and CXX name the compilers (cc and c++). A missing one is skipped, and so is npuquant/dlpack.h where there is no
# <dlpack/dlpack.h>; with CI=true that is a failure. clang and clang++ are asked as well if they are there.
set -eu

include=$1
failed=0

skip() {
    echo "SKIPPED: $*"
    if [ "${CI:-}" = true ]; then
        failed=1
    fi
}

# check compiler language standards: the compiler may be a command of several words
check() {
    compiler=$1
    language=$2
    shift 2
    # shellcheck disable=SC2086
    if ! $compiler --version >/dev/null 2>&1; then
        skip "$language: no compiler ($compiler)"
        return
    fi
    headers="npuquant/npuquant.h npuquant/version.h"
    # shellcheck disable=SC2086
    if echo '#include <dlpack/dlpack.h>' | $compiler -x "$language" -fsyntax-only - 2>/dev/null; then
        headers="$headers npuquant/dlpack.h"
    else
        skip "npuquant/dlpack.h with $compiler: no <dlpack/dlpack.h>"
    fi
    for standard in "$@"; do
        for header in $headers; do
            # shellcheck disable=SC2086
            if printf '#include <%s>\n#include <%s>\nextern int nothing;\n' "$header" "$header" |
                $compiler -x "$language" "-std=$standard" -Wall -Wextra -Wpedantic -Wundef -Wshadow -Wconversion \
                    -Werror -fsyntax-only -I"$include" -; then
                echo "ok: $header as $standard with $compiler"
            else
                echo "FAILED: $header as $standard with $compiler"
                failed=1
            fi
        done
    done
}

check "${CC:-cc}" c c99 c11 gnu17
check "${CXX:-c++}" c++ c++11 c++17

# Clang's opinion too, where there is one.
if clang --version >/dev/null 2>&1; then
    check clang c c99 c11
fi
if clang++ --version >/dev/null 2>&1; then
    check clang++ c++ c++11
fi

exit $failed
