#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The single-file library: every build gives the same file. It compiles without warnings, works from C and C++, and has
# the right bits in every backend, and in C99 without extensions. The tests of row kernels, linked with this one object,
# run with the flags that fuse most products and sums: here the compiler sees all kernels at once. The group `compilers`
# of scripts/nightly tests the library with other levels and flags.
#
# usage: single_file.sh source-directory directory-of-npuquant.c [compiler]
# With a compiler: only tests that depend on the compiler. Without: CC, and all else: making the files again, NEON, tcc,
# other languages. Without Rust's tools CI=true does not fail.
# shellcheck disable=SC2016,SC2086,SC2317 # an inner shell's variables; tools of several words; functions passed on
set -eu
# shellcheck source=tests/packaging.sh
. "$(dirname "$0")/packaging.sh"

source=$(cd "$1" && pwd)
made=$(cd "$2" && pwd)
cc_for_tests=$cc
whole=$([ -n "${3:-}" ] || echo true)
cc=${3:-$cc}
# Parts of -ffast-math: clang compiles the file without them; gcc, which has macros for them, refuses the file.
parts="-funsafe-math-optimizations -freciprocal-math -fno-signed-zeros"
if $cc --version 2>&1 | grep -q clang; then
    unsafe=$parts
    parts=
else
    unsafe=
fi
cd "$work"
mkdir npuquant
cp "$made/npuquant.c" "$made/npuquant.h" npuquant/

# ---- without warnings, and all kernels against the reference ----

# The tests' objects, by $cc_for_tests, in objects-MACHINE.
test_objects() {
    machine=$1
    mkdir "objects-$machine"
    for test in support calls kernels test_kernels; do
        $cc_for_tests -O1 -std=c11 -D_DEFAULT_SOURCE -ffp-contract=off "-I$source/include" "-I$source/src" \
            -c "$source/tests/$test.c" -o "objects-$machine/$test.o"
    done
    $cc_for_tests -O1 -c "$source/src/ref/npuq_ref.c" -o "objects-$machine/npuq_ref.o"
}

# kernels OBJECT MACHINE EMULATOR: with the tests' objects
kernels() {
    $cc_for_tests "objects-$2/"*.o "$1" -lcmocka -lm -lpthread -o kernels && $3 ./kernels
}

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

# object FILE FLAGS...: npuquant.c without a warning
object() {
    object=$1
    shift
    check "$cc, $* without warnings" $cc "$@" -Wall -Wextra -Wpedantic -Werror -c npuquant/npuquant.c -o "$object"
}
# At -O0, with the oldest standard, every warning, and every intrinsic that must be inlined.
object single.o -std=c99 -O0
object single.o $fused
object portable.o -std=c99 -Og -DNPUQ_NO_SIMD
# The tests of kernels call internal functions.
internal=-DNPUQ_INTERNAL=
if [ "$has_cmocka" ]; then
    $cc $fused $internal -c npuquant/npuquant.c -o kernels.o
    check "$cc, $fused, kernels" kernels kernels.o native ""
fi

# ---- what a user does ----

for object in single.o portable.o; do
    check "$cc, C program, $object" \
        program_runs $cc -std=c99 -Wall -Wextra -Werror -I. "$source/tests/consumer.c" $object
done

# plain_c COMPILER RUNTIME: plain.o, C99 alone, has the same bits, in every floating-point state of the caller
plain_c() {
    check "$1, checksum" \
        program_runs $cc -O1 -I. "-I$source/tests/cmocka" "$source/tests/checksum.c" "$source/tests/calls.c" \
        plain.o $2 -lm
    [ "$has_cmocka" ] || return 0
    check "$1, operators" env NPUQ_TEST_SHARE=50 sh -c '"$@" -o operators && ./operators' sh \
        $cc -O1 -D_DEFAULT_SOURCE "-I$source/include" "-I$source/src" "$source/tests/test_operators.c" \
        "$source/tests/calls.c" "$source/tests/drawings.c" "$source/tests/oracle.c" objects-native/support.o \
        objects-native/npuq_ref.o plain.o $2 -lcmocka -lm -lpthread
}
object plain.o -std=c99 -O1 -DNPUQ_PLAIN_C -Wno-unused
plain_c "$cc, NPUQ_PLAIN_C" ""

if echo '#include <dlpack/dlpack.h>' | $cc -E -x c - >/dev/null 2>&1; then
    cp "$source/include/npuquant/dlpack.h" npuquant_dlpack.h
    printf '#include "npuquant/npuquant.h"\n#include "npuquant_dlpack.h"\n' >both.c
    check "$cc, with dlpack.h" $cc -std=c99 -Wall -Wextra -Werror -c both.c -o both.o
else
    skip "dlpack.h: no <dlpack/dlpack.h>"
fi
for flags in -ffast-math -Ofast -ffinite-math-only $parts; do
    refuses "$cc $flags" 'build it without -ffast-math' $cc $flags -c npuquant/npuquant.c -o fast.o
done

# Exactly the functions of the header are global, and exported if marked.
functions >declared
$cc -shared -fPIC -fvisibility=hidden '-DNPUQ_API=__attribute__((visibility("default")))' \
    npuquant/npuquant.c -o libsingle.so
exports libsingle.so >exported
check "$cc, exports the header's functions" diff declared exported
for object in single.o portable.o; do
    $nm -g --defined-only $object | awk 'NF == 3 { print $3 }' | sort >global
    check "$cc, global names of $object" diff declared global
done
for object in single.o portable.o plain.o; do
    $nm -u $object | awk '$NF ~ /^[a-z]/ { print $NF }' >calls
    check "$cc, the page names the $(wc -l <calls) functions that $object wants" \
        sh -c 'test -s calls && while read -r name; do
            grep -F "\`$name\`" "$1" || { echo "not on the page: $name" && exit 1; }
        done <calls' sh "$source/docs/embedding.md"
done

[ "$whole" ] || exit $failed

# ---- what only one of the compilers need show ----

# Without the protection, the compiler fuses products, and the test of kernels sees it.
if [ "$has_cmocka" ] && [ "$(uname -m)" = x86_64 ] && grep -q -w fma /proc/cpuinfo; then
    sed '/__asm__("" : "+[vw]"/d' npuquant/npuquant.c >npuquant/unprotected.c
    $cc -O3 -ffp-contract=fast $internal -c npuquant/unprotected.c -o unprotected.o
    refuses "$cc: what is not protected" FAILED kernels unprotected.o native ""
fi

if tcc -v >/dev/null 2>&1; then
    check "tcc" tcc -c npuquant/npuquant.c -o plain.o
    # tcc's objects want tcc's own library.
    plain_c "tcc" "$(tcc -print-search-dirs | sed -n 's/^ *\(.*libtcc1.a\)$/\1/p')"
else
    skip "a compiler without GNU C: no tcc"
fi

cross=aarch64-linux-gnu-gcc
if have qemu-aarch64 && echo 'int main(void) { return 0; }' | $cross -x c - -lcmocka -o probe 2>/dev/null; then
    cc_for_tests=$cross
    test_objects aarch64
    flags="-O3 -ffp-contract=fast"
    check "$cross, $flags" $cross $flags $internal -c npuquant/npuquant.c -o neon.o
    check "$cross, $flags, kernels" kernels neon.o aarch64 \
        "env NPUQ_TEST_SHARE=8 qemu-aarch64 -L /usr/aarch64-linux-gnu"
else
    skip "NEON: no $cross, qemu-aarch64 and cmocka for it"
fi

# ---- the page ----

if ! have python3 || ! have "$cxx"; then
    skip "the lines of the page: no python3, or no $cxx"
    exit $failed
fi

# The page's steps, with the test's program. Not optimised: these steps are about linking.
mkdir page page/bin page/project
cp -r "$source/LICENSE" "$source/include" "$source/single-file" "$source/src" page/
sed 's|<npuquant/npuquant.h>|"npuquant.h"|' "$source/tests/consumer.c" >page/project/program.c
cp page/project/program.c page/project/program.cpp
printf '#!/bin/sh\nPATH=%s\nexec %s "$@" -O0 -DNPUQ_NO_SIMD\n' "'$PATH'" "$cc" >page/bin/cc
printf '#!/bin/sh\nPATH=%s\nexec %s "$@" -O0 -std=c++11 -Wall -Wextra -Wpedantic -Werror\n' "'$PATH'" "$cxx" \
    >page/bin/c++
chmod +x page/bin/cc page/bin/c++
sed -n '/^## Two files/,/^## Symbols/s/^    //p' "$source/docs/embedding.md" |
    sed 's/^c.* program\.c.*/& -lm; .\/a.out; rm a.out/' >page/steps
check "the $(wc -l <page/steps) lines of the page, $(grep -c a.out page/steps) of which make a program" \
    sh -c 'cd page && PATH=$PWD/bin:$PATH && sh -e ./steps'
for file in npuquant.c npuquant.h; do
    check "$file is made the same without Meson" cmp page/project/$file npuquant/$file
done
printf '#include "npuquant.h"\nint main() {}\n' >npuquant/a.cpp
refuses "$cxx a.cpp npuquant.c" 'with a C compiler' $cxx npuquant/a.cpp npuquant/npuquant.c -o a
[ "$(grep -c ': error: ' log)" = 1 ] || fail "$cxx a.cpp npuquant.c: one error should say what to do"

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
    if ! section "### $1" >printed 2>&1 || ! grep -qx '21 -53 127 0, scale 0.023622' printed ||
        ! grep -q '^dynamic_quant: scale: ' printed; then
        cat printed
        return 1
    fi
}

section "## Other languages" # makes the shared library
check "the page's program for ctypes" language ctypes
if python3 -c 'import cffi' 2>/dev/null; then
    check "the page's program for cffi" language cffi
else
    skip "the page's program for cffi: no Python package cffi"
fi
if have bindgen && have rustc; then
    check "the page's program for Rust" language Rust
else
    echo "SKIPPED: the page's program for Rust: no bindgen, or no rustc" # 500 MB: not in the gate
fi

exit $failed
