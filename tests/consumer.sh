#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A user's builds: with the installed library through pkg-config alone, and with the library as a Meson subproject, for
# each default_library. A build with -ffast-math must fail.
#
# usage: consumer.sh source-directory
# CC, CXX, MESON, PKG_CONFIG, NM and READELF name the tools. A missing one is skipped; with CI=true that fails.
# shellcheck disable=SC2086 # tools may be several words
set -eu

source=$(cd "$1" && pwd)
cc=${CC:-cc}
cxx=${CXX:-c++}
meson=${MESON:-meson}
pkg_config=${PKG_CONFIG:-pkg-config}
nm=${NM:-nm}
readelf=${READELF:-readelf}
failed=0

unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS DESTDIR MAKEFLAGS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

skip() {
    echo "SKIPPED: $*"
    if [ "${CI:-}" = true ]; then
        failed=1
    fi
}

fail() {
    echo "FAILED: $*"
    failed=1
}

# have COMMAND: the command, perhaps of several words, is there
have() {
    $1 --version >/dev/null 2>&1
}

# quietly LOG COMMAND...: shows the output of a command that fails
quietly() {
    log=$work/$1.log
    shift
    if ! "$@" >"$log" 2>&1; then
        cat "$log"
        echo "FAILED: $*"
        exit 1
    fi
}

only_library="-Dtests=false -Dpython=disabled -Dbench=false -Dexamples=false"

# ---- an installed library, found by pkg-config ----

prefix=$work/prefix
quietly setup $meson setup "$work/build" "$source" --prefix="$prefix" --libdir=lib $only_library
quietly compile $meson compile -C "$work/build"
quietly install $meson install -C "$work/build" --no-rebuild

for header in dlpack.h npuquant.h prefix.h version.h; do
    cmp "$source/include/npuquant/$header" "$prefix/include/npuquant/$header" || fail "$header is not installed"
done

# libraries FOLDER WHAT EXPECTED: the kinds of libraries that were installed there, "a", "so" or "a so"
libraries() {
    if ! [ -e "$work/build/src/libnpuquant.so" ]; then
        skip "what $2 installs: the shared library is no .so here"
        return
    fi
    kinds=$(find "$1" -name 'libnpuquant.*' | sed 's/.*libnpuquant\.//; s/\..*//' | sort -u | xargs)
    if [ "$kinds" = "$3" ]; then
        echo "ok: $2 installs: $kinds"
    else
        fail "$2 installs: $kinds; expected: $3"
    fi
}

# build_and_run WHAT PKG-CONFIG-FLAGS: as C and as C++
build_and_run() {
    what=$1
    shift
    cflags=$($pkg_config "$@" --cflags npuquant)
    libs=$($pkg_config "$@" --libs npuquant)
    if $cc -std=c99 -Wall -Wextra -Werror $cflags "$source/tests/consumer.c" -o "$work/consumer" $libs &&
        LD_LIBRARY_PATH=$prefix/lib "$work/consumer"; then
        echo "ok: C program, $what"
    else
        fail "C program, $what"
    fi
    if ! have "$cxx"; then
        skip "C++ program, $what: no compiler ($cxx)"
        return
    fi
    # -x holds for all later files: "-x none" ends it before pkg-config's files.
    if $cxx -std=c++11 -Wall -Wextra -Werror $cflags -x c++ "$source/tests/consumer.c" -x none -o "$work/consumer" \
        $libs && LD_LIBRARY_PATH=$prefix/lib "$work/consumer"; then
        echo "ok: C++ program, $what"
    else
        fail "C++ program, $what"
    fi
}

# What a user sees of the shared library.
check_shared_library() {
    library=$prefix/lib/libnpuquant.so
    if have "$nm"; then
        # Exactly the functions of the header.
        tr '\n' ' ' <"$prefix/include/npuquant/npuquant.h" | tr ';' '\n' |
            sed -n 's/.*NPUQ_API .*[ *]\(npuq_[a-z_]*\)(.*/\1/p' | sort -u >"$work/declared"
        $nm -D --defined-only "$library" | awk '$2 != "A" { print $NF }' | sed 's/@.*//' | sort -u >"$work/exported"
        if ! [ -s "$work/declared" ]; then
            fail "no function found in npuquant.h"
        elif diff "$work/declared" "$work/exported"; then
            echo "ok: $(wc -l <"$work/exported") exported symbols, the functions of npuquant.h"
        else
            fail "exported symbols (>) are not the functions of npuquant.h (<)"
        fi
        # From the C library: no allocation, no threads, no mathematics.
        if $nm -D --undefined-only "$library" | awk '$1 == "U" { print $2 }' | sed 's/@.*//' |
            grep -vxE '__tls_get_addr|fprintf|fwrite|stderr|getenv|mem(cpy|move|set|cmp)|str(cmp|len)|v?snprintf|__.*_chk'; then
            fail "the library calls something new (above): it promises to need little"
        else
            echo "ok: the library neither allocates nor starts threads"
        fi
        # Hidden symbols are global in the archive: they must not collide with a user's.
        if $nm -g --defined-only "$prefix/lib/libnpuquant.a" | awk 'NF == 3 { print $3 }' | grep -v '^npuq_'; then
            fail "symbols of the archive without the prefix npuq_"
        else
            echo "ok: all symbols of the archive begin with npuq_"
        fi
    else
        skip "exported symbols: no $nm"
    fi
    if have "$readelf"; then
        abi=$(sed -n 's/^#define NPUQ_ABI_VERSION \([0-9]*\)$/\1/p' "$prefix/include/npuquant/version.h")
        soname=$($readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\].*/\1/p')
        if [ "$soname" = "libnpuquant.so.$abi" ]; then
            echo "ok: soname $soname"
        else
            fail "soname is $soname, NPUQ_ABI_VERSION $abi"
        fi
        needed=$($readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' |
            grep -v -E '^(libc\.|libm\.|ld-)' || :)
        if [ -n "$needed" ]; then
            fail "the library needs more than the C library: $needed"
        else
            echo "ok: needs the C library only"
        fi
    else
        skip "soname: no $readelf"
    fi
}

if have "$pkg_config"; then
    PKG_CONFIG_PATH=$prefix/lib/pkgconfig
    export PKG_CONFIG_PATH
    version=$(sed -n 's/^#define NPUQ_VERSION "\(.*\)"$/\1/p' "$source/include/npuquant/version.h")
    if [ "$($pkg_config --modversion npuquant)" = "$version" ]; then
        echo "ok: version $version"
    else
        fail "pkg-config says version $($pkg_config --modversion npuquant), version.h $version"
    fi
    build_and_run "shared"
    if [ -e "$prefix/lib/libnpuquant.so" ]; then
        libraries "$prefix" "a build without default_library" "a so"
        check_shared_library
        rm -f "$prefix"/lib/libnpuquant.so*
        build_and_run "static" --static
    else
        skip "symbols and soname: the shared library is no .so here"
    fi
    unset PKG_CONFIG_PATH
else
    skip "programs against the installed library: no $pkg_config"
fi

mv "$prefix" "$work/plain"

# ---- one kind of library alone ----

without_backends="-Dauto_features=disabled"
for kind in static shared; do
    quietly $kind-setup $meson setup "$work/$kind" "$source" --prefix="$prefix" --libdir=lib $only_library \
        $without_backends -Dbuildtype=debug -Ddefault_library=$kind
    quietly $kind-install $meson install -C "$work/$kind"
    if have "$pkg_config"; then
        export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
        build_and_run "default_library=$kind"
        unset PKG_CONFIG_PATH
    fi
    case $kind in
    static) libraries "$prefix" "default_library=$kind" "a" ;;
    shared) libraries "$prefix" "default_library=$kind" "so" ;;
    esac
    rm -rf "$prefix"
done

# ---- a second copy, with a prefix ----

quietly prefix-setup $meson setup "$work/prefix-build" "$source" --prefix="$prefix" --libdir=lib $only_library \
    -DNPUQ_PREFIX=engine_ -Dbuildtype=debug
quietly prefix-install $meson install -C "$work/prefix-build"
if have "$pkg_config" && [ -e "$prefix/lib/libnpuquant.so" ]; then
    export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
    build_and_run "shared, with a prefix"
    rm -f "$prefix"/lib/libnpuquant.so*
    build_and_run "static, with a prefix" --static
    # shellcheck disable=SC2046
    $cc $($pkg_config --cflags npuquant) -Dmain=engine -c "$source/tests/consumer.c" -o "$work/engine.o"
    unset PKG_CONFIG_PATH
    $cc -I"$work/plain/include" -Dmain=plain -c "$source/tests/consumer.c" -o "$work/plain.o"
    echo 'int engine(void), plain(void); int main(void) { return engine() || plain(); }' >"$work/both.c"
    if $cc "$work/both.c" "$work/engine.o" "$work/plain.o" -o "$work/both" -Wl,--whole-archive \
        "$prefix/lib/libnpuquant.a" "$work/plain/lib/libnpuquant.a" -Wl,--no-whole-archive -lm && "$work/both"; then
        echo "ok: two whole archives in one program"
    else
        fail "two whole archives in one program"
    fi
else
    skip "a prefix: no $pkg_config, or the shared library is no .so here"
fi

# ---- a subproject ----

mkdir -p "$work/user/subprojects"
cp "$source/tests/consumer.c" "$work/user/"
ln -s "$source" "$work/user/subprojects/npuquant"
cat >"$work/user/meson.build" <<'END'
project('user', 'c', default_options: ['c_std=c99', 'buildtype=debug'])
npuquant = dependency('npuquant',
  fallback: ['npuquant'],
  default_options: ['tests=false', 'bench=false', 'examples=false'],
)
test('consumer', executable('consumer', 'consumer.c', dependencies: npuquant))
executable('consumer_static', 'consumer.c', dependencies: dependency('npuquant', static: true))
END
# runs PROGRAM KIND: the program of this build runs, and has the archive in it ("a") or needs the shared library ("so")
runs() {
    linked=$2
    if have "$readelf"; then
        case $($readelf -d "$work/user-build/$1") in
        *NEEDED*libnpuquant*) linked=so ;;
        *) linked=a ;;
        esac
    else
        skip "what $1 links: no $readelf"
    fi
    if "$work/user-build/$1" && [ "$linked" = "$2" ]; then
        echo "ok: $what: $1 links: $linked"
    else
        fail "$what: $1 links: $linked; expected: $2"
    fi
}

# subproject KIND KINDS MESON-OPTIONS...: the program links KIND; the project installs KINDS
subproject() {
    kind=$1
    kinds=$2
    shift 2
    what="subproject $*"
    rm -rf "$work/user-build" "$work/destination"
    quietly subproject-setup $meson setup "$work/user-build" "$work/user" --prefix=/usr --wrap-mode=forcefallback "$@"
    quietly subproject-compile $meson compile -C "$work/user-build"
    quietly subproject-install env DESTDIR="$work/destination" $meson install -C "$work/user-build" --no-rebuild
    libraries "$work/destination" "$what" "$kinds"
    runs consumer "$kind"
    runs consumer_static a
}
subproject so so # as Meson builds all projects that say nothing
subproject so "a so" -Ddefault_library=both $without_backends
subproject a a -Ddefault_library=static $without_backends
sed "s/^npuquant = dependency('npuquant',/& static: true,/" "$work/user/meson.build" >"$work/static.build"
mv "$work/static.build" "$work/user/meson.build"
subproject a a $without_backends

# ---- -ffast-math ----

if $meson setup "$work/fast" "$source" $only_library -Dc_args=-ffast-math >"$work/fast.log" 2>&1; then
    fail "a build with -ffast-math is not refused"
elif grep -q 'cannot be built with -ffast-math' "$work/fast.log"; then
    echo "ok: -ffast-math is refused"
else
    cat "$work/fast.log"
    fail "a build with -ffast-math is refused with another message"
fi

exit $failed
