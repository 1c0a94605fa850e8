#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The public headers. Each compiles alone, twice over and without a warning, as C and as C++. So does a program with
# views of const or uninitialised arrays and comparisons of versions; -fshort-enums refuses this program. The list for
# calls by name has every function that computes, and files that do not use the list name them. Every function can have
# a prefix. Few comparisons name an operator. The rooms of src include what is below them.
#
# usage: header.sh include-directory
# CC and CXX name the compilers (cc and c++); clang and clang++ are tried as well. A missing compiler is skipped, and so
# is npuquant/dlpack.h without <dlpack/dlpack.h>; with CI=true that fails.
# shellcheck disable=SC2086 # a compiler may be several words
set -eu

include=$1
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/program.c" <<'PROGRAM'
#include <npuquant/npuquant.h>

static const float x[2][3] = {{0.5f, -1.5f, 100.0f}, {2.5f, -300.0f, 7.0f}};

int main(void)
{
    float scale;
    const npuq_tensor output = npuq_vector(&scale, NPUQ_FLOAT32, 1);
    const int64_t shape[] = {2, 3};
    const npuq_tensor all = npuq_tensor_contiguous(x, NPUQ_FLOAT32, 2, shape);
    const npuq_tensor rows = npuq_matrix(x, NPUQ_FLOAT32, 2, 3, 0);
    const npuq_tensor row = npuq_vector(x[1], NPUQ_FLOAT32, 3);

    return all.data == rows.data && row.data != output.data ? 0 : 1;
}

#if !NPUQ_VERSION_AT_LEAST(NPUQ_VERSION_MAJOR, NPUQ_VERSION_MINOR, NPUQ_VERSION_PATCH)
#error "older than itself"
#endif
#undef NPUQ_VERSION_MAJOR
#undef NPUQ_VERSION_MINOR
#undef NPUQ_VERSION_PATCH
#define NPUQ_VERSION_MAJOR 1
#define NPUQ_VERSION_MINOR 2
#define NPUQ_VERSION_PATCH 3
#if !NPUQ_VERSION_AT_LEAST(1, 2, 3) || !NPUQ_VERSION_AT_LEAST(1, 2, 2) || !NPUQ_VERSION_AT_LEAST(1, 1, 9) || \
    !NPUQ_VERSION_AT_LEAST(0, 9, 9)
#error "1.2.3 is at least each of these"
#endif
#if NPUQ_VERSION_AT_LEAST(1, 2, 4) || NPUQ_VERSION_AT_LEAST(1, 3, 0) || NPUQ_VERSION_AT_LEAST(2, 0, 0)
#error "1.2.3 is older than each of these"
#endif
PROGRAM

skip() {
    echo "SKIPPED: $*"
    if [ "${CI:-}" = true ]; then
        failed=1
    fi
}

# compiles WHAT FILE FLAGS...: with the variables of check()
compiles() {
    what=$1
    shift
    if $compiler -x "$language" "-std=$standard" $warnings -c -o "$work/object" -I"$include" "$@"; then
        echo "ok: $what as $standard with $compiler"
    else
        echo "FAILED: $what as $standard with $compiler"
        failed=1
    fi
}

# With the variables of check(): one error, with a hint.
refuses_short_enums() {
    if $compiler -x "$language" "-std=$standard" $warnings -fshort-enums -c -o "$work/object" -I"$include" \
        "$work/program.c" 2>"$work/errors" || [ "$(grep -c 'error:' "$work/errors")" != 1 ] ||
        ! grep -q 'error: .*npuquant_needs_enums_of_4_bytes_compile_with_fno_short_enums' "$work/errors"; then
        cat "$work/errors"
        echo "FAILED: -fshort-enums as $standard with $compiler is not refused in one line"
        failed=1
    fi
}

# check COMPILER LANGUAGE STANDARDS
check() {
    compiler=$1
    language=$2
    shift 2
    if ! $compiler --version >/dev/null 2>&1; then
        skip "$language: no compiler ($compiler)"
        return
    fi
    headers="npuquant/npuquant.h npuquant/prefix.h npuquant/version.h"
    if echo '#include <dlpack/dlpack.h>' | $compiler -x "$language" -fsyntax-only - 2>/dev/null; then
        headers="$headers npuquant/dlpack.h"
    else
        skip "npuquant/dlpack.h with $compiler: no <dlpack/dlpack.h>"
    fi
    warnings="-Wall -Wextra -Wpedantic -Wundef -Wshadow -Wconversion -Werror"
    # Clang compares comments with declarations.
    if $compiler --version | grep -q clang; then
        warnings="$warnings -Wdocumentation"
    fi
    for standard in "$@"; do
        for header in $headers; do
            printf '#include <%s>\n#include <%s>\nextern int nothing;\n' "$header" "$header" >"$work/$language.c"
            compiles "$header" "$work/$language.c"
        done
        compiles "a program" "$work/program.c"
        compiles "a program with a prefix" "$work/program.c" -DNPUQ_PREFIX=engine_
        refuses_short_enums
    done
}

# names REGEX: the functions of the header with matching declarations
names() {
    tr '\n' ' ' <"$include/npuquant/npuquant.h" | grep -o -E "$1" | sed 's/(.*//; s/.*npuq_//' | sort
}

# The list of functions is the header's: functions with an executor, and others that compute. One that fills an array
# with extents computes no tensor.
names 'npuq_[a-z0-9_]+\([^();]*npuq_executor \*executor\);' >"$work/WITH"
names 'npuq_status npuq_[a-z0-9_]+\(const npuq_tensor[^][();]*\);' | comm -23 - "$work/WITH" >"$work/WITHOUT"
for executor in WITH WITHOUT; do
    sed -n "s/^    DO(\([a-z0-9_]*\), [A-Z0-9_]*, $executor).*/\1/p" "$(dirname "$0")/../src/operators.def" |
        sort >"$work/listed"
    if ! [ -s "$work/listed" ] || ! diff "$work/$executor" "$work/listed"; then
        echo "FAILED: src/operators.def (>) has not the functions of the header $executor an executor (<)"
        failed=1
    fi
done

# A reader, grep and ctags find each function by its name: a line of src begins with a type and has it.
names 'NPUQ_API [^();]*npuq_[a-z0-9_]+\([^();]*\);' >"$work/public"
(cd "$(dirname "$0")/../src" && grep -h -r -o -E --include='*.c' '^[a-z][a-z0-9_ *]*\bnpuq_[a-z0-9_]+\(' .) |
    sed 's/($//; s/.*npuq_//' | sort -u >"$work/defined"
if ! [ -s "$work/public" ] || ! comm -23 "$work/public" "$work/defined" | diff - /dev/null; then
    echo "FAILED: src defines these functions by no line with their names"
    failed=1
fi

# named FILE PATTERN: the file has a place for the function
named() {
    grep -q -E "$2" "$(dirname "$0")/../$1" || {
        echo "FAILED: npuq_$function() is not in $1: there is no $2"
        failed=1
    }
}

# rows_of LIST: the functions of a list of the operators
rows_of() {
    sed -n "/^#define $1(/,/[^\\]\$/s/^    DO(\([a-z0-9_]*\), .*/\1/p" "$(dirname "$0")/../src/operators.def"
}

# Files that do not use the lists: one names every function, others every operator.
rows_of EACH_OPERATOR >"$work/operators"
cat "$work/WITH" "$work/WITHOUT" >"$work/all"
while read -r function; do
    named tests/test_errors.c "\bop = TEST_$(echo "$function" | tr '[:lower:]' '[:upper:]')\b"
done <"$work/all"
while read -r function; do
    named bench/cases.py "\"$function/"
    named tests/data/make_examples.py "\"$(echo "$function" | tr _ -)\""
    named tests/random_calls.py "^def random_$function\("
    named "docs/operators/${function%_float8}.md" "npuq_$function" # a part of the page of the operator to integers
done <"$work/operators"

# Code asks what an operator has, as its rows say, not which one it is: no more comparisons than these name an operator.
most=40
{
    cat "$work/operators"
    sed -n 's/^#define EACH_OWN(DO) DO(\([a-z0-9_]*\), .*/\1/p' "$(dirname "$0")/../src/operators.def"
} >"$work/named"
lower=$(paste -s -d '|' "$work/named")
upper="(BENCH_|NUMBER_OF_)?($(echo "$lower" | tr '[:lower:]' '[:upper:]'))\b"
text="\"($(echo "$lower" | sed 's/_/[_-]/g'))\""
pattern="([!=]=|\bcase|[^&]&|[^|]\|) *\(?$upper|\b$upper *([!=]=|&[^&]|\|[^|])|(RARE|USUAL|COMMON), $upper"
pattern="$pattern|([!=]=|\bin) *[([{]?$text|$text (not in|in|[!=]=)"
pattern="$pattern|((starts|ends)with|strn?cmp)\([^\"]*\"(dynamic|$lower)"
(cd "$(dirname "$0")/.." && grep -r -I -n -o -E --exclude-dir=tests --exclude-dir=results --exclude-dir=__pycache__ \
    "$pattern" src diagnosis bench python) >"$work/comparisons"
if [ "$(wc -l <"$work/comparisons")" -gt "$most" ]; then
    cat "$work/comparisons"
    echo "FAILED: more than $most comparisons name an operator; its rows in src/operators.def may say what is meant"
    failed=1
fi

# Dependencies between the rooms of src point down: a file includes files of its own room and of those behind it here.
(cd "$(dirname "$0")/../src" && grep -r -n '#include "' --include='*.[ch]' -- *) |
    awk -F '[:"]' -v rooms="operators kinds plan tile check simd backends ref src" '
        function room_of(path) { return path ~ "/" ? substr(path, 1, index(path, "/") - 1) : "src" }
        BEGIN { for (n = split(rooms, names, " "); n > 0; n--) place[names[n]] = n }
        {
            from = room_of($1)
            to = sub("^\\.\\./", "", $4) || from == "src" || $4 ~ "/" ? room_of($4) : from
            if (!(from in place) || !(to in place) || place[to] < place[from]) print
        }' >"$work/upward"
if [ -s "$work/upward" ]; then
    cat "$work/upward"
    echo "FAILED: a file of src includes one of a room above it, or of a room without a place"
    failed=1
fi

names 'NPUQ_API [^();]*[ *]npuq_[a-z0-9_]+\(' >"$work/functions"
if ! sed -n 's/^#define npuq_\([a-z0-9_]*\) .*/\1/p' "$include/npuquant/prefix.h" | diff "$work/functions" -; then
    echo "FAILED: npuquant/prefix.h has not, in this order, the functions of the header (<)"
    failed=1
fi

check "${CC:-cc}" c c99 c11 gnu17
check "${CXX:-c++}" c++ c++11 c++17

if clang --version >/dev/null 2>&1; then
    check clang c c99 c11
fi
if clang++ --version >/dev/null 2>&1; then
    check clang++ c++ c++11
fi

exit $failed
