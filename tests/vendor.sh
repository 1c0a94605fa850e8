#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Vendors the reference: copies src/ref, builds it with every compiler and with flags that tempt compilers to other
# arithmetic (FMA contraction, x87 registers), and compares the checksums of its outputs with the library's.
#
# usage: vendor.sh ref-directory include-directory checksum.c checksum
# checksum is checksum.c built against the library.
# VENDOR_CC lists the C compilers; default: gcc, and clang or the newest clang-N. VENDOR_MACHINES lists machines with a
# cross compiler and an emulator; default: aarch64 and s390x (big-endian) if there. What is missing is reported as
# SKIPPED; with CI=true that fails.
set -eu

oracle=$1
include=$2
check=$3
library=$(cd "$(dirname "$4")" && pwd)/$(basename "$4")
failed=0
skipped=0

compilers=${VENDOR_CC:-}
if [ -z "$compilers" ]; then
    clang=clang
    for version in 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
        if ! command -v clang >/dev/null 2>&1 && command -v clang-$version >/dev/null 2>&1; then
            clang=clang-$version
        fi
    done
    compilers="gcc $clang"
fi

unset NPUQ_BACKEND
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

skip() {
    echo "SKIPPED: $*"
    skipped=$((skipped + 1))
    if [ "${CI:-}" = true ]; then
        failed=1
    fi
}

fail() {
    echo "FAILED: $*"
    failed=1
}

# The compilers below see only the copy and the program, which uses the library's header for its tensors.
mkdir "$work/vendored"
cp "$oracle"/* "$work/vendored/"
cp -R "$include/npuquant" "$work/npuquant"
(echo '#define CHECKSUM_ORACLE' && cat "$check") >"$work/check.c"
cd "$work"

# The same without volatile: if the results differ, the flags change arithmetic, and the data shows the change.
mkdir unprotected
for file in vendored/*; do
    sed 's/volatile //' "$file" >"unprotected/${file#*/}"
done

# ---- the library's checksums, a line for each part that the reference has ----

"$library" -v >lines || fail "the library, with a backend of: $(grep -v '^#' lines)"
sed '/^ref /,$d; /, library alone$/d' lines >expected
cat expected

# ---- the reference's ----

# agrees COMPILER FLAGS...: the vendored reference gives the library's checksums
agrees() {
    if ! "$@" -I. -Ivendored check.c vendored/npuq_ref.c -o oracle 2>notes; then
        cat notes
        fail "does not compile: $*"
    elif ! ./oracle >actual; then
        fail "does not run: $*"
    elif diff expected actual; then
        echo "ok: $*"
    else
        fail "other results than the library's (<): $*"
    fi
}

# shows COMPILER FLAGS...: with these flags, the unprotected reference gives other results
shows() {
    if ! "$@" -I. -Iunprotected check.c unprotected/npuq_ref.c -o oracle 2>notes || ! ./oracle >actual; then
        cat notes
        fail "unprotected: $*"
    elif diff expected actual >notes; then
        skip "the oracle needs no protection from $*: that build shows little"
    else
        echo "ok: $(grep -c '^>' notes) parts would differ without protection: $*"
    fi
}

# runs COMPILER FLAGS...: the compiler's programs with these flags run here
runs() {
    echo 'int main(void) { return 0; }' >probe.c
    "$@" probe.c -o probe 2>notes && ./probe
}

for cc in $compilers; do
    if ! "$cc" --version >/dev/null 2>&1; then
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

    # Linked without the flag, which would make the program flush subnormals.
    for flag in -freciprocal-math -funsafe-math-optimizations; do
        if "$cc" -std=gnu17 -O3 "$flag" -c vendored/npuq_ref.c -o npuq_ref.o &&
            "$cc" -std=c99 -O2 -I. -Ivendored check.c npuq_ref.o -o oracle && ./oracle >actual &&
            diff expected actual; then
            echo "ok: $cc -std=gnu17 -O3 $flag"
        else
            fail "$cc -std=gnu17 -O3 $flag"
        fi
    done

    # The folder alone, with every warning: each header, and the source.
    for file in vendored/*.h vendored/*.c; do
        if printf '#include "%s"\nextern int nothing;\n' "$file" |
            "$cc" -std=c99 -pedantic -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion \
                -Wcast-qual -Wundef -Wstrict-prototypes -Wmissing-prototypes -Werror -x c -I. -c - -o /dev/null; then
            echo "ok: $cc -std=c99 -pedantic -Wall -Wextra -Werror, ${file#*/}"
        else
            fail "warnings: $cc, ${file#*/}"
        fi
    done

    # The program in the README prints the README's output.
    # shellcheck disable=SC2016
    sed -n '/^```c$/,/^```$/{/^```/!p;}' vendored/README.md >example.c
    # shellcheck disable=SC2016
    sed -n '/^```text$/,/^```$/{/^```/!p;}' vendored/README.md >example.txt
    if "$cc" -std=c99 -pedantic -Wall -Wextra -Werror -O2 -Ivendored example.c vendored/npuq_ref.c -o example &&
        ./example >actual && [ -s actual ] && diff example.txt actual; then
        echo "ok: $cc, the example of the README"
    else
        fail "$cc, the example of the README"
    fi

    # Where the compiler assumes that there is no NaN, the build stops with the reason.
    for flag in -ffast-math -Ofast -ffinite-math-only; do
        if "$cc" -std=c99 -O2 "$flag" -c vendored/npuq_ref.c -o /dev/null 2>notes; then
            fail "$cc $flag is not refused"
        elif grep -q 'error.*build it without -ffast-math' notes; then
            echo "ok: $cc $flag is refused"
        else
            cat notes
            fail "$cc $flag is refused, but not by #error"
        fi
    done

    case $cc in
    *gcc*) cxx=$(echo "$cc" | sed 's/gcc/g++/') ;;
    *clang*) cxx=$(echo "$cc" | sed 's/clang/clang++/') ;;
    *) cxx= ;;
    esac
    if [ -z "$cxx" ] || ! "$cxx" --version >/dev/null 2>&1; then
        skip "C++ to go with $cc"
        continue
    fi
    if "$cc" -std=c99 -O2 -c vendored/npuq_ref.c -o npuq_ref.o &&
        "$cxx" -std=c++11 -O2 -pedantic -Wall -Wextra -Werror -I. -Ivendored -x c++ -include npuq_ref_rows.h \
            check.c -x none npuq_ref.o -o oracle && ./oracle >actual && diff expected actual; then
        echo "ok: $cxx -std=c++11 -pedantic -Wall -Wextra -Werror"
    else
        fail "$cxx -std=c++11"
    fi
done

# ---- on other machines, under an emulator ----

for machine in ${VENDOR_MACHINES:-aarch64 s390x}; do
    cross=$machine-linux-gnu-gcc
    if command -v "$cross" >/dev/null 2>&1 && command -v "qemu-$machine" >/dev/null 2>&1; then
        for flags in "-std=c99 -O0" "-std=gnu17 -O3 -ffp-contract=fast"; do
            # shellcheck disable=SC2086
            if "$cross" $flags -static -I. -Ivendored check.c vendored/npuq_ref.c -o oracle &&
                "qemu-$machine" ./oracle >actual && diff expected actual; then
                echo "ok: $cross $flags"
            else
                fail "$cross $flags"
            fi
        done
    elif [ -n "${VENDOR_MACHINES:-}" ]; then
        skip "$machine: needs $cross and qemu-$machine"
    else
        echo "   ($machine not tried: no $cross or no qemu-$machine)"
    fi
done

if [ $skipped != 0 ]; then
    echo "SKIPPED in all: $skipped, see above"
fi
exit $failed
