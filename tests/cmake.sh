#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A user's builds with CMake: find_package() finds the installed library after its tree has moved, or a copy of the
# source joins the build. CMake installs the files that Meson installs, and refuses wrong uses.
#
# usage: cmake.sh source-directory
# shellcheck disable=SC2016,SC2086,SC2317 # CMake's variables; tools may be several words; functions passed on
set -eu
# shellcheck source=tests/packaging.sh
. "$(dirname "$0")/packaging.sh"

source=$(cd "$1" && pwd)
export CC="$cc"
have "$cmake" || skip_all "no $cmake"

# lines FIRST: the CMake commands of docs/embedding.md whose first line begins with FIRST
lines() {
    awk -v first="$1" '/^```/ { state = $0 == "```cmake" ? "begin" : ""; next }
        state == "begin" { state = index($0, first) == 1 ? "in" : "" }
        state == "in"' "$source/docs/embedding.md" >"$work/lines"
    if ! grep -q target_link_libraries "$work/lines"; then
        echo "FAILED: docs/embedding.md has no $1" >&2
        exit 1
    fi
    cat "$work/lines"
}

# program NAME COMMANDS: a project in $work/NAME, with the source in it, that builds the test's program with these CMake
# commands
program() {
    mkdir "$work/$1"
    cp "$source/tests/consumer.c" "$work/$1/"
    ln -s "$source" "$work/$1/npuquant"
    cat >"$work/$1/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.14)
project(consumer LANGUAGES C)
add_executable(consumer consumer.c)
$2
EOF
}

# runs NAME WHAT CMAKE-OPTIONS...: builds the project and runs its program
runs() {
    name=$1
    what=$2
    shift 2
    rm -rf "$work/$name-build"
    quietly $cmake -S "$work/$name" -B "$work/$name-build" "$@"
    quietly $cmake --build "$work/$name-build" --parallel 2
    check "$what" "$work/$name-build/consumer"
}

# ---- installed by Meson and by CMake, with DESTDIR, and moved ----

# cmake_installs NAME CMAKE-OPTIONS...: the library, moved to $work/NAME after the installation
cmake_installs() {
    tree=$1
    shift
    quietly $cmake -S "$source" -B "$work/$tree-build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_INSTALL_PREFIX=/usr \
        -DCMAKE_INSTALL_LIBDIR=lib "$@"
    quietly $cmake --build "$work/$tree-build" --parallel 2
    quietly env DESTDIR="$work/$tree-destination" $cmake --install "$work/$tree-build"
    mv "$work/$tree-destination/usr" "$work/$tree"
}

# files FOLDER
files() {
    (cd "$1" && find . ! -type d | sort)
}

meson_installs meson --libdir=lib -Dbuildtype=debug
cmake_installs shared -DBUILD_SHARED_LIBS=ON
cmake_installs static -DBUILD_SHARED_LIBS=OFF

files "$work/meson" >"$work/meson-files"
(files "$work/shared" && files "$work/static") | sort -u >"$work/cmake-files"
check "CMake (>) installs the files that Meson (<) installs" diff "$work/meson-files" "$work/cmake-files"
for file in npuquant-config.cmake npuquant-config-version.cmake; do
    check "$file of Meson (<) and CMake (>)" \
        diff "$work/meson/lib/cmake/npuquant/$file" "$work/shared/lib/cmake/npuquant/$file"
done
if grep -r -F "$work" "$work/meson" "$work/shared" "$work/static" --include='*.cmake' --include='*.pc'; then
    fail "an installed file names the folder where it was built"
fi

# The shared libraries export the same symbols. A library with all of CMake's archive exports none of them.
if [ -e "$work/meson/lib/libnpuquant.so" ]; then
    exports "$work/meson/lib/libnpuquant.so" >"$work/meson-exports"
    exports "$work/shared/lib/libnpuquant.so" >"$work/cmake-exports"
    check "CMake's library (>) exports what Meson's (<) exports" diff "$work/meson-exports" "$work/cmake-exports"
    $cc -shared -o "$work/whole-cmake.so" -Wl,--whole-archive "$work/static/lib/libnpuquant.a" -Wl,--no-whole-archive
    exports_nothing "$work/whole-cmake.so"
fi

program find 'find_package(npuquant ${VERSION} REQUIRED)
target_link_libraries(consumer PRIVATE npuquant::npuquant${LINKAGE})'
program documented "$(lines find_package)"
runs documented "find_package as documented" -DCMAKE_PREFIX_PATH="$work/meson"
prefix="-DCMAKE_PREFIX_PATH=$work"
runs find "find_package, Meson's, static" "$prefix/meson" -DLINKAGE=_static
# As on Debian, where libraries are one folder deeper.
quietly $meson configure "$work/meson-build" --libdir=lib/deep
quietly env DESTDIR="$work/deep" $meson install -C "$work/meson-build"
runs find "find_package, Meson's, a deeper folder" -Dnpuquant_DIR="$work/deep/usr/lib/deep/cmake/npuquant"
runs find "find_package, CMake's, shared" "$prefix/shared" -DVERSION="$(version)"
runs find "find_package, CMake's, static" "$prefix/static" -DLINKAGE=_static
runs find "find_package, CMake's archive where there is nothing else" "$prefix/static"
pkg_config_runs "CMake's" shared/lib
pkg_config_runs "CMake's, --define-prefix" shared/lib --define-prefix
pkg_config_runs "CMake's archive" static/lib

# A second copy, with a prefix: the program only links if the package sets NPUQ_PREFIX.
for linkage in ON OFF; do
    cmake_installs prefix-$linkage -DNPUQ_PREFIX=engine_ -DBUILD_SHARED_LIBS=$linkage
    runs find "find_package, NPUQ_PREFIX, BUILD_SHARED_LIBS=$linkage" "$prefix/prefix-$linkage"
    if $nm -g --defined-only "$work/prefix-$linkage"/lib/libnpuquant.[as]* 2>/dev/null |
        awk 'NF == 3 && $2 == "T" { print $3 }' | grep -v '^engine_npuq_'; then
        fail "names without a prefix, BUILD_SHARED_LIBS=$linkage"
    fi
done
pkg_config_runs "CMake's with a prefix" prefix-ON/lib

# ---- versions ----

version=$(version)
major=${version%%.*}
minor=${version#*.}
minor=${minor%%.*}
patch=${version##*.}

find_version() {
    rm -rf "$work/version"
    $cmake -S "$work/find" -B "$work/version" "$prefix/meson" -DVERSION="$1"
}
series=$major.$minor
next=$((minor + 1))
for wanted in "$series" "$series...$series" "$series...<$major.$next" "$version;EXACT"; do
    if [ "$wanted" = "$series...$series" ] && [ "$patch" != 0 ]; then
        continue
    fi
    check "find_package takes $version for $wanted" find_version "$wanted"
done
for wanted in "$major.$next" "$((major + 1)).0" "$series.$((patch + 1))" "$series...<$version" "$series;EXACT"; do
    case $wanted in
    *"<$version" | "$series;EXACT") [ "$patch" != 0 ] || continue ;; # an empty range; the version itself
    esac
    refuses "$version for $wanted" 'Could not find a configuration file' find_version "$wanted"
done
if [ "$major" = 0 ] && [ "$minor" != 0 ]; then
    refuses "$version for 0.0" 'Could not find a configuration file' find_version 0.0
fi

# ---- a copy of the source in the build ----

program subdirectory "$(lines add_subdirectory)"
runs subdirectory "add_subdirectory"
runs subdirectory "add_subdirectory, shared" -DBUILD_SHARED_LIBS=ON
runs subdirectory "add_subdirectory, NPUQ_PREFIX" -DNPUQ_PREFIX=engine_ -DCMAKE_BUILD_TYPE=Debug
runs subdirectory "add_subdirectory, no backends" -DNPUQ_AVX2=OFF -DNPUQ_AVX512=OFF -DNPUQ_NEON=OFF \
    -DNPUQ_GENERIC=OFF
quietly env DESTDIR="$work/nothing" $cmake --install "$work/subdirectory-build"
[ ! -e "$work/nothing" ] || fail "a part of another project installs its library"

program fetch "$(lines 'include(FetchContent)')"
runs fetch "FetchContent as documented, from here" -DFETCHCONTENT_SOURCE_DIR_NPUQUANT="$source"
grep -q "GIT_TAG v$version)\$" "$work/fetch/CMakeLists.txt" ||
    fail "docs/embedding.md fetches another version than $version"

# The project's own shared library, which exports the functions; with options that projects set for all code.
program exporting 'add_subdirectory(npuquant)
target_link_libraries(consumer PRIVATE npuquant::npuquant)
add_library(mine STATIC mine.c)
target_link_libraries(mine PUBLIC npuquant::npuquant)
install(TARGETS mine EXPORT mine ARCHIVE DESTINATION lib)
install(EXPORT mine DESTINATION lib/cmake/mine)
install(FILES mine-config.cmake DESTINATION lib/cmake/mine)'
printf '#include <npuquant/npuquant.h>\nconst char *mine(void);\nconst char *mine(void) { return npuq_version(); }\n' \
    >"$work/exporting/mine.c"
cat >"$work/exporting/mine-config.cmake" <<'EOF'
include(CMakeFindDependencyMacro)
find_dependency(npuquant)
include("${CMAKE_CURRENT_LIST_DIR}/mine.cmake")
EOF
runs exporting "add_subdirectory, with CMAKE_UNITY_BUILD, -Werror=cast-qual and install(EXPORT)" \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_C_FLAGS="-O0 -Werror=cast-qual" -DCMAKE_INSTALL_PREFIX="$work/exported" \
    -DCMAKE_INSTALL_LIBDIR=lib
quietly $cmake -DNPUQ_INSTALL=ON "$work/exporting-build"
quietly $cmake --install "$work/exporting-build"
files "$work/exported" | grep -v mine >"$work/exported-files"
files "$work/static" >"$work/static-files"
check "with NPUQ_INSTALL a project (>) installs what npuquant (<) installs alone" \
    diff "$work/static-files" "$work/exported-files"
program dependent 'find_package(mine REQUIRED)
target_link_libraries(consumer PRIVATE mine)'
runs dependent "find_package of what was exported" -DCMAKE_PREFIX_PATH="$work/exported"

# The archive must have the kernel tables of every backend that Meson builds.
tables() {
    $nm -g --defined-only "$1" | awk '$3 ~ /^npuq_rows_/ { print $3 }' | sort
}
if tables "$work/meson/lib/libnpuquant.a" >"$work/meson-tables" 2>/dev/null; then
    tables "$work/static/lib/libnpuquant.a" >"$work/cmake-tables"
    [ -s "$work/meson-tables" ] || fail "Meson's archive has no kernel tables"
    check "CMake (>) builds the backends that Meson (<) builds" diff "$work/meson-tables" "$work/cmake-tables"
fi

refuses "-ffast-math" 'cannot be built with -ffast-math' \
    $cmake -S "$source" -B "$work/refused" -DCMAKE_C_FLAGS=-ffast-math
refuses "-Ofast for this configuration" 'cannot be built with -ffast-math' \
    $cmake -S "$source" -B "$work/fast-release" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-Ofast
program fast 'add_compile_options(-ffast-math)
add_subdirectory(npuquant)'
refuses "-ffast-math for all of a project" 'cannot be built with -ffast-math' \
    $cmake -S "$work/fast" -B "$work/fast-build"
other=$([ "$($cc -dumpmachine | cut -d- -f1)" = aarch64 ] && echo AVX2 || echo NEON)
refuses "a backend of another architecture" "NPUQ_$other: needs" \
    $cmake -S "$source" -B "$work/other" "-DNPUQ_$other=ON"

exit $failed
