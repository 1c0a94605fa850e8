#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The single-file library: every build gives the same file. It compiles without warnings, works from C and C++, and has
# the right bits in every backend, and in C99 without extensions. The tests of row kernels, linked with this one object,
# run with the flags that fuse most products and sums: here the compiler sees all kernels at once. The group `compilers`
# of scripts/nightly tests the library with other levels and flags.
#
# usage: single_file.sh source-directory directory-of-npuquant.c [compiler]
# With a compiler: only tests that depend on the compiler. Without: CC, and all else: making the files again, NEON, C++.
# CXX, NM and PKG_CONFIG name tools. A missing tool is reported as SKIPPED; with CI=true that fails, except Rust's.
#
# shellcheck disable=SC2016,SC2086 # an inner shell's variables; a compiler may be several words
set -eu

source=$(cd "$1" && pwd)
made=$(cd "$2" && pwd)
cxx=${CXX:-c++}
nm=${NM:-nm}
pkg_config=${PKG_CONFIG:-pkg-config}
cc=${3:-${CC:-cc}}
whole=$([ -n "${3:-}" ] || echo true)
# Parts of -ffast-math: clang compiles the file without them; gcc, which has macros for them, refuses the file.
parts="-funsafe-math-optimizations -freciprocal-math -fno-signed-zeros"
if $cc --version 2>&1 | grep -q clang; then
    unsafe=$parts
    parts=
else
    unsafe=
fi
failed=0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/npuquant"
cp "$made/npuquant.c" "$made/npuquant.h" "$work/npuquant/"
cd "$work"

skip() {
    echo "SKIPPED: $*"
    [ "${CI:-}" != true ] || failed=1
}

fail() {
    echo "FAILED: $*"
    failed=1
}

# check WHAT COMMAND...: shows the output of a command that fails
check() {
    what=$1
    shift
    if "$@" >check.log 2>&1; then
        echo "ok: $what"
    else
        tail -20 check.log
        fail "$what"
    fi
}

# The page's steps, with the test's program. Not optimised: these steps are about linking.
if [ ! "$whole" ]; then
    : # another test's
elif python3 --version >/dev/null 2>&1 && $cxx --version >/dev/null 2>&1; then
    mkdir page page/bin page/project
    cp -r "$source/LICENSE" "$source/include" "$source/single-file" "$source/src" page/
    sed 's|<npuquant/npuquant.h>|"npuquant.h"|' "$source/tests/consumer.c" >page/project/program.c
    cp page/project/program.c page/project/program.cpp
    printf '#!/bin/sh\nPATH=%s\nexec %s "$@" -O0 -DNPUQ_NO_SIMD\n' "'$PATH'" "$cc" >page/bin/cc
    printf '#!/bin/sh\nPATH=%s\nexec %s "$@" -O0\n' "'$PATH'" "$cxx" >page/bin/c++
    chmod +x page/bin/cc page/bin/c++
    sed -n '/^## Two files/,/^## Symbols/s/^    //p' "$source/docs/embedding.md" |
        sed 's/^c.* program\.c.*/& -lm; .\/a.out; rm a.out/' >page/steps
    check "the $(wc -l <page/steps) lines of the page, $(grep -c a.out page/steps) of which make a program" \
        sh -c 'cd page && PATH=$PWD/bin:$PATH && sh -e ./steps'
    cat check.log
    for file in npuquant.c npuquant.h; do
        check "$file is made the same without Meson" cmp page/project/$file npuquant/$file
    done
    printf '#include "npuquant.h"\nint main() {}\n' >page/project/a.cpp
    (cd page/project && ! $cxx a.cpp npuquant.c) >mistake.log 2>&1 || fail "$cxx a.cpp npuquant.c is not refused"
    if grep ': error: ' mistake.log >errors && [ "$(wc -l <errors)" = 1 ] && grep -q 'with a C compiler' errors; then
        echo "ok: $cxx a.cpp npuquant.c: one error says what to do"
    else
        head -20 mistake.log
        fail "$cxx a.cpp npuquant.c: one error should say what to do"
    fi
else
    skip "the lines of the page: no python3, or no $cxx"
fi

# section HEADING: writes the page's programs below it to the files that their first lines name, and runs its commands.
section() (
    cd page/project
    PATH=$PWD/../bin:$PATH
    rm -f steps
    awk -v heading="$1" '
        /^##/ { inside = $0 == heading }
        !inside { next }
        /^```[a-z]/ { getline; file = $2 }
        /^```$/ { file = ""; next }
        file { print >file; next }
        sub(/^    /, "") { print >"steps" }' "$source/docs/embedding.md"
    sh -e ./steps
)

# language HEADING: the page's program prints the values of the README, and a message
language() {
    if section "### $1" >check.log 2>&1 &&
        grep -qx '21 -53 127 0, scale 0.023622' check.log && grep -q '^dynamic_quant: scale: ' check.log; then
        echo "ok: the page's program for $1"
    else
        tail -20 check.log
        fail "the page's program for $1"
    fi
}

if [ -d page/project ]; then
    section "## Other languages" # makes the shared library
    language ctypes
    if python3 -c 'import cffi' 2>/dev/null; then
        language cffi
    else
        skip "the page's program for cffi: no Python package cffi"
    fi
    if bindgen --version >/dev/null 2>&1 && rustc --version >/dev/null 2>&1; then
        language Rust
    else
        echo "SKIPPED: the page's program for Rust: no bindgen, or no rustc" # 500 MB: not in the gate
    fi
fi

# ---- without warnings, and all kernels against the reference ----

# The tests' objects, by $cc_for_tests, in objects-MACHINE.
test_objects() {
    machine=$1
    mkdir "objects-$machine"
    for test in support kernels test_kernels test_kernels_integers; do
        $cc_for_tests -O1 -std=c11 -D_DEFAULT_SOURCE -ffp-contract=off "-I$source/include" "-I$source/src" \
            -c "$source/tests/$test.c" -o "objects-$machine/$test.o"
    done
    $cc_for_tests -O1 -c "$source/src/ref/npuq_ref.c" -o "objects-$machine/npuq_ref.o"
}

# kernels OBJECT MACHINE EMULATOR: with the tests' objects
kernels() {
    for program in test_kernels test_kernels_integers; do
        $cc_for_tests "objects-$2/$program.o" "objects-$2/support.o" "objects-$2/kernels.o" "objects-$2/npuq_ref.o" \
            "$1" -lcmocka -lm -lpthread -o kernels && $3 ./kernels || return 1
    done
}

cc_for_tests=${CC:-cc}
has_cmocka=
if $pkg_config --exists cmocka 2>/dev/null; then
    has_cmocka=true
    test_objects native
else
    skip "all kernels: no cmocka"
fi

fused="-std=gnu17 -O3 -ffp-contract=fast $unsafe"
# A compiler may not know this CPU, or may warn about -march=native.
if echo 'int main(void) { return 0; }' | $cc -march=native -Werror -c -x c - -o probe.o >/dev/null 2>&1; then
    fused="$fused -march=native"
else
    echo "-march=native: not with $cc on this CPU"
fi
# At -O0, with the oldest standard, every warning, and every intrinsic that must be inlined.
check "$cc, -std=c99 -O0 without warnings" \
    $cc -std=c99 -O0 -Wall -Wextra -Wpedantic -Werror -c npuquant/npuquant.c -o single.o
check "$cc, $fused without warnings" \
    $cc $fused -Wall -Wextra -Wpedantic -Werror -c npuquant/npuquant.c -o single.o
# The tests of kernels call internal functions.
internal=-DNPUQ_INTERNAL=
if [ "$has_cmocka" ]; then
    $cc $fused $internal -c npuquant/npuquant.c -o kernels.o
    check "$cc, $fused, kernels" kernels kernels.o native ""
fi

# Without the protection, the compiler fuses products, and the test of kernels sees it.
if [ "$whole" ] && [ "$has_cmocka" ] && [ "$(uname -m)" = x86_64 ] && grep -q -w fma /proc/cpuinfo; then
    sed '/__asm__("" : "+[vw]"/d' npuquant/npuquant.c >npuquant/unprotected.c
    $cc -O3 -ffp-contract=fast $internal -c npuquant/unprotected.c -o unprotected.o
    if ! kernels unprotected.o native "" >check.log 2>&1 && grep -q 'FAILED' check.log; then
        echo "ok: $cc fuses what is not protected: $(grep -c 'FAILED' check.log) lines tell of it"
    else
        tail -5 check.log
        fail "$cc, -ffp-contract=fast: the kernels' test shows nothing"
    fi
fi

cross=aarch64-linux-gnu-gcc
if [ ! "$whole" ]; then
    : # another test's
elif command -v $cross >/dev/null 2>&1 && command -v qemu-aarch64 >/dev/null 2>&1 &&
    echo 'int main(void) { return 0; }' | $cross -x c - -lcmocka -o probe 2>/dev/null; then
    cc_for_tests=$cross
    test_objects aarch64
    flags="-O3 -ffp-contract=fast"
    check "$cross, $flags" $cross $flags $internal -c npuquant/npuquant.c -o neon.o
    check "$cross, $flags, kernels" kernels neon.o aarch64 \
        "env NPUQ_TEST_SHARE=8 qemu-aarch64 -L /usr/aarch64-linux-gnu"
else
    skip "NEON: no $cross, qemu-aarch64 and cmocka for it"
fi

# ---- what a user does ----

check "$cc, -Og and NPUQ_NO_SIMD without warnings" \
    $cc -std=c99 -Og -DNPUQ_NO_SIMD -Wall -Wextra -Wpedantic -Werror -c npuquant/npuquant.c -o portable.o
for object in single.o portable.o; do
    check "$cc, C program, $object" sh -c "$cc -std=c99 -Wall -Wextra -Werror -I. '$source/tests/consumer.c' \
        $object -o consumer && ./consumer"
    cat check.log
done

# plain_c COMPILER...: C99 alone, by this compiler and by tcc. The same bits, in every floating-point state of the
# caller. tcc's objects want tcc's own library.
runtime=
plain_c() {
    compiler=$1
    shift
    check "$compiler" "$@" -c npuquant/npuquant.c -o plain.o
    check "$compiler, checksum" sh -c "$cc -O1 -I. '$source/tests/checksum.c' plain.o $runtime -lm -o checksum && ./checksum"
    if [ "$has_cmocka" ]; then
        check "$compiler, operators in other floating-point states" sh -c "$cc -O1 -D_DEFAULT_SOURCE -I'$source/include' -I'$source/src' \
            '$source/tests/test_operators.c' '$source/tests/calls.c' '$source/tests/oracle.c' objects-native/support.o \
            objects-native/npuq_ref.o plain.o $runtime -lcmocka -lm -lpthread -o operators && NPUQ_TEST_SHARE=50 ./operators"
    fi
}
plain_c "$cc, NPUQ_PLAIN_C without warnings" \
    $cc -std=c99 -O1 -DNPUQ_PLAIN_C -Wall -Wextra -Wpedantic -Werror -Wno-unused
if [ ! "$whole" ]; then
    : # another test's
elif tcc -v >/dev/null 2>&1; then
    runtime=$(tcc -print-search-dirs | sed -n 's/^ *\(.*libtcc1.a\)$/\1/p')
    plain_c "$(tcc -v)" tcc
else
    skip "a compiler without GNU C: no tcc"
fi

if echo '#include <dlpack/dlpack.h>' | $cc -E -x c - >/dev/null 2>&1; then
    cp "$source/include/npuquant/dlpack.h" npuquant_dlpack.h
    printf '#include "npuquant/npuquant.h"\n#include "npuquant_dlpack.h"\n' >both.c
    check "$cc, with dlpack.h" $cc -std=c99 -Wall -Wextra -Werror -c both.c -o both.o
else
    skip "dlpack.h: no <dlpack/dlpack.h>"
fi
for flags in -ffast-math -Ofast -ffinite-math-only $parts; do
    if $cc $flags -c npuquant/npuquant.c -o fast.o >fast.log 2>&1; then
        fail "$cc $flags is not refused"
    elif grep -q 'build it without -ffast-math' fast.log; then
        echo "ok: $cc $flags is refused"
    else
        tail -5 fast.log
        fail "$cc $flags is refused with another message"
    fi
done

# Exactly the functions of the header are global, and exported if marked.
$cc -shared -fPIC -fvisibility=hidden '-DNPUQ_API=__attribute__((visibility("default")))' \
    npuquant/npuquant.c -o libsingle.so
tr '\n' ' ' <"$source/include/npuquant/npuquant.h" | tr ';' '\n' |
    sed -n 's/.*NPUQ_API .*[ *]\(npuq_[a-z_]*\)(.*/\1/p' | sort -u >declared
$nm -D --defined-only libsingle.so | awk '{ print $NF }' | grep -v -E '^(_init|_fini)$' | sort -u >exported
check "$cc, exports the header's functions" diff declared exported
for object in single.o portable.o plain.o; do
    $nm -u $object | awk '$NF ~ /^[a-z]/ { print $NF }' >calls
    check "$cc, the page names the $(wc -l <calls) functions that $object wants" \
        sh -c 'test -s calls && while read -r name; do
            grep -F "\`$name\`" "$1" || { echo "not on the page: $name" && exit 1; }; done <calls' sh "$source/docs/embedding.md"
done
for object in single.o portable.o; do
    $nm -g --defined-only $object | awk 'NF == 3 { print $3 }' | sort >global
    check "$cc, global names of $object" diff declared global
done

if [ ! "$whole" ]; then
    : # another test's
elif $cxx --version >/dev/null 2>&1; then
    check "C++ program" sh -c "$cxx -std=c++11 -Wall -Wextra -Wpedantic -Werror -I. -x c++ '$source/tests/consumer.c' \
        -x none single.o -o consumer && ./consumer"
    cat check.log
else
    skip "C++ program: no $cxx"
fi

exit $failed
