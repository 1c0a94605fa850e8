#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Vendors the reference: copies src/ref, builds it with every compiler and with flags that tempt compilers to other
# arithmetic (FMA contraction, x87 registers), and compares the checksums of its outputs with the library's.
#
# usage: vendor.sh source-directory checksum
# checksum is checksum.c built against the library.
# VENDOR_CC lists the C compilers; default: gcc, and clang or the newest clang-N. VENDOR_MACHINES lists machines with a
# cross compiler and an emulator; default: aarch64 and s390x (big-endian) if there.
# shellcheck disable=SC2086,SC2317 # flags of several words; functions passed on
set -eu
# shellcheck source=tests/packaging.sh
. "$(dirname "$0")/packaging.sh"

compilers=${VENDOR_CC:-}
if [ -z "$compilers" ]; then
    clang=clang
    for number in 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
        if ! have clang && have clang-$number; then
            clang=clang-$number
        fi
    done
    compilers="gcc $clang"
fi

# The compilers below see only the copy and the program, which uses the library's header for its tensors.
mkdir "$work/vendored" "$work/unprotected" "$work/program" "$work/program/src"
cp -R "$1/src/ref" "$work/vendored/"
cp -R "$1/include/npuquant" "$1/tests" "$work/program/"
cp "$1/src/operators.def" "$1/src/types.def" "$1/src/shape.h" "$work/program/src/"
program="-DTEST_WITHOUT_LIBRARY -Iprogram -Iprogram/tests/cmocka \
    program/tests/checksum.c program/tests/calls.c program/tests/oracle.c"
library=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
cd "$work"

# The same without volatile: if the results differ, the flags change arithmetic, and the data shows the change.
cp -R vendored/ref unprotected/
sed -i 's/volatile //' unprotected/ref/*

# ---- the library's checksums, a line for each part that the reference has ----

"$library" -v >lines || fail "the library, with a backend of: $(grep -v '^#' lines)"
sed '/^ref /,$d; /, library alone$/d' lines >expected
cat expected

# ---- the reference's ----

# same_results PROGRAM: the library's (<)
same_results() {
    "$@" >actual && diff expected actual
}

# results FOLDER COMPILER FLAGS...: of the reference in the folder, compared with the library's
results() {
    folder=$1
    shift
    "$@" "-I$folder" $program "$folder/ref/npuq_ref.c" -o oracle && same_results ./oracle
}

agrees() {
    check "$*" results vendored "$@"
}

# shows COMPILER FLAGS...: with these flags, the unprotected reference gives other results
shows() {
    if results unprotected "$@" >notes 2>&1; then
        skip "the oracle needs no protection from $*: that build shows little"
    elif grep -q '^>' notes; then
        echo "ok: $(grep -c '^>' notes) parts would differ without protection: $*"
    else
        cat notes
        fail "unprotected: $*"
    fi
}

# linked FLAG: compiled with the flag, but linked without, which would make the program flush subnormals
linked() {
    "$cc" -std=gnu17 -O3 "$1" -c vendored/ref/npuq_ref.c -o npuq_ref.o &&
        "$cc" -std=c99 -O2 -Ivendored $program npuq_ref.o -o oracle && same_results ./oracle
}

on_machine() {
    "$machine-linux-gnu-gcc" "$@" -static -Ivendored $program vendored/ref/npuq_ref.c -o oracle &&
        same_results "qemu-$machine" ./oracle
}

# example COMPILER FLAGS...: the program in the README prints the README's output
# shellcheck disable=SC2016
example() {
    sed -n '/^```c$/,/^```$/{/^```/!p;}' vendored/ref/README.md >example.c
    sed -n '/^```text$/,/^```$/{/^```/!p;}' vendored/ref/README.md >example.txt
    "$cc" -std=c99 -O2 -c vendored/ref/npuq_ref.c -o npuq_ref.o &&
        "$@" -pedantic -Wall -Wextra -Werror -O2 -Ivendored/ref example.c -x none npuq_ref.o -o example &&
        ./example >actual && [ -s actual ] && diff example.txt actual
}

# runs COMPILER FLAGS...: the compiler's programs with these flags run here
runs() {
    echo 'int main(void) { return 0; }' >probe.c
    "$@" probe.c -o probe 2>notes && ./probe
}

for cc in $compilers; do
    if ! have "$cc"; then
        skip "no $cc"
        continue
    fi
    agrees "$cc" -std=c99 -O0
    agrees "$cc" -std=c99 -O2
    agrees "$cc" -std=gnu17 -O2 -ffp-contract=fast

    if runs "$cc" -march=native; then
        agrees "$cc" -std=c99 -O3 -march=native
        agrees "$cc" -std=gnu17 -O3 -march=native -ffp-contract=fast
    else
        skip "$cc -march=native"
    fi

    case $("$cc" -dumpmachine) in
    x86_64* | i?86*)
        if "$cc" -march=native -dM -E -x c /dev/null | grep -q __FMA__; then
            shows "$cc" -std=gnu17 -O3 -march=native -ffp-contract=fast
        else
            skip "$cc: no fused multiply-add on this CPU, -march=native tried little"
        fi
        x87=-mfpmath=387
        if "$cc" --version | grep -q clang; then
            x87=-mno-sse
        fi
        if runs "$cc" -m32 $x87; then
            agrees "$cc" -std=c99 -m32 $x87 -O0
            agrees "$cc" -std=c99 -m32 $x87 -O2
            agrees "$cc" -std=gnu17 -m32 $x87 -O3 -ffp-contract=fast
            shows "$cc" -std=gnu17 -m32 $x87 -O3 -ffp-contract=fast
        else
            skip "$cc -m32 $x87: needs the 32-bit C library (gcc-multilib)"
        fi
        ;;
    esac

    for flag in -freciprocal-math -funsafe-math-optimizations; do
        check "$cc -std=gnu17 -O3 $flag" linked $flag
    done

    # The folder alone, with every warning: each header, and the source.
    for file in vendored/ref/*.h vendored/ref/*.c; do
        printf '#include "%s"\nextern int nothing;\n' "$file" >include.c
        check "$cc -std=c99 -pedantic -Wall -Wextra -Werror, ${file#*/}" \
            "$cc" -std=c99 -pedantic -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion \
            -Wcast-qual -Wundef -Wstrict-prototypes -Wmissing-prototypes -Werror -c include.c -o /dev/null
    done
    check "$cc, the example of the README" example "$cc" -std=c99

    # Where the compiler assumes that there is no NaN, the build stops with the reason.
    for flag in -ffast-math -Ofast -ffinite-math-only; do
        refuses "$cc $flag" 'error.*build it without -ffast-math' \
            "$cc" -std=c99 -O2 "$flag" -c vendored/ref/npuq_ref.c -o /dev/null
    done

    cxx=$(echo "$cc" | sed 's/gcc/g++/; s/clang/clang++/')
    if [ "$cxx" != "$cc" ] && have "$cxx"; then
        check "$cxx, the example of the README" example "$cxx" -std=c++11 -x c++ -include npuq_ref_rows.h
    else
        skip "C++ to go with $cc"
    fi
done

# ---- on other machines, under an emulator ----

for machine in ${VENDOR_MACHINES:-aarch64 s390x}; do
    if have "$machine-linux-gnu-gcc" && have "qemu-$machine"; then
        for flags in "-std=c99 -O0" "-std=gnu17 -O3 -ffp-contract=fast"; do
            check "$machine-linux-gnu-gcc $flags" on_machine $flags
        done
    elif [ -n "${VENDOR_MACHINES:-}" ]; then
        skip "$machine: needs $machine-linux-gnu-gcc and qemu-$machine"
    else
        echo "   ($machine not tried: no $machine-linux-gnu-gcc or no qemu-$machine)"
    fi
done

exit $failed
