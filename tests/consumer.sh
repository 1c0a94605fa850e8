#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A user's builds with Meson's library: installed, moved and found by pkg-config, and as a Meson subproject, for each
# default_library. The shared library needs little. A build with -ffast-math must fail.
#
# usage: consumer.sh source-directory
# shellcheck disable=SC2086 # tools may be several words
set -eu
# shellcheck source=tests/packaging.sh
. "$(dirname "$0")/packaging.sh"

source=$(cd "$1" && pwd)
without_backends="-Dauto_features=disabled"

# has_libraries FOLDER WHAT KINDS: the kinds of libraries that were installed there, "a", "so" or "a so"
has_libraries() {
    kinds=$(find "$1" -name 'libnpuquant.*' | sed 's/.*libnpuquant\.//; s/\..*//' | sort -u | xargs)
    if [ -z "$has_so" ]; then
        skip "what $2 installs: the shared library is no .so here"
    elif [ "$kinds" = "$3" ]; then
        echo "ok: $2 installs: $kinds"
    else
        fail "$2 installs: $kinds; expected: $3"
    fi
}

# ---- installed and moved ----

meson_installs plain --libdir=lib
has_so=$([ ! -e "$work/plain/lib/libnpuquant.so" ] || echo true)
has_libraries "$work/plain" "a build without default_library" "a so"
for header in dlpack.h npuquant.h prefix.h version.h; do
    check "$header is installed" cmp "$source/include/npuquant/$header" "$work/plain/include/npuquant/$header"
done
pkg_config_runs "shared" plain/lib
pkg_config_runs "--define-prefix" plain/lib --define-prefix
if ! have "$pkg_config"; then
    skip "the version in npuquant.pc: no $pkg_config"
elif [ "$(PKG_CONFIG_PATH=$work/plain/lib/pkgconfig $pkg_config --modversion npuquant)" != "$(version)" ]; then
    fail "npuquant.pc has another version than $(version)"
fi

library=$work/plain/lib/libnpuquant.so
if [ -z "$has_so" ] || ! have "$nm" || ! have "$readelf"; then
    skip "what the library needs: no $nm, no $readelf, or the shared library is no .so here"
else
    # From the C library: no allocation, no threads, no mathematics.
    $nm -D --undefined-only "$library" | awk '$1 == "U" { print $2 }' | sed 's/@.*//' >"$work/undefined"
    if grep -vxE '__tls_get_addr|fprintf|fwrite|stderr|getenv|mem(cpy|move|set|cmp)|str(cmp|len)|v?snprintf|__.*_chk' \
        "$work/undefined"; then
        fail "the library calls something new (above): it promises to need little"
    else
        echo "ok: the library neither allocates nor starts threads"
    fi
    if $readelf -d "$library" | grep NEEDED | grep -vE '\[(libc\.|libm\.|ld-)'; then
        fail "the library needs more than the C library (above)"
    else
        echo "ok: needs the C library only"
    fi
fi
rm -f "$library"*
pkg_config_runs "static" plain/lib --static

meson_installs static --libdir=lib/deep $without_backends -Dbuildtype=debug -Ddefault_library=static
has_libraries "$work/static" "default_library=static" "a"
pkg_config_runs "default_library=static, a deeper folder" static/lib/deep

meson_installs prefix --libdir=lib -DNPUQ_PREFIX=engine_ -Dbuildtype=debug
pkg_config_runs "shared, with a prefix" prefix/lib
rm -f "$work"/prefix/lib/libnpuquant.so*
pkg_config_runs "static, with a prefix" prefix/lib --static

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

# links PROGRAM KIND: the program of this build runs, and has the archive in it ("a") or needs the shared library ("so")
links() {
    linked=$2
    if have "$readelf"; then
        linked=$($readelf -d "$work/user-build/$1" | grep -q 'NEEDED.*libnpuquant' && echo so || echo a)
    else
        skip "what $1 links: no $readelf"
    fi
    check "$project: $1 runs" "$work/user-build/$1"
    [ "$linked" = "$2" ] || fail "$project: $1 links: $linked; expected: $2"
}

# subproject KIND KINDS MESON-OPTIONS...: the program links KIND; the project installs KINDS
subproject() {
    kind=$1
    kinds=$2
    shift 2
    project="subproject $*"
    rm -rf "$work/user-build" "$work/destination"
    quietly $meson setup "$work/user-build" "$work/user" --prefix=/usr --wrap-mode=forcefallback "$@"
    quietly env DESTDIR="$work/destination" $meson install -C "$work/user-build"
    has_libraries "$work/destination" "$project" "$kinds"
    links consumer "$kind"
    links consumer_static a
}
subproject so so # as Meson builds all projects that say nothing
subproject so "a so" -Ddefault_library=both $without_backends
subproject a a -Ddefault_library=static $without_backends
sed "s/^npuquant = dependency('npuquant',/& static: true,/" "$work/user/meson.build" >"$work/static.build"
mv "$work/static.build" "$work/user/meson.build"
subproject a a $without_backends

refuses "-ffast-math" 'cannot be built with -ffast-math' \
    $meson setup "$work/fast" "$source" $only_library -Dc_args=-ffast-math

exit $failed
