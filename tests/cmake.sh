#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A user's builds with CMake: find_package() finds the installed library after its tree has moved, or a copy of the
# source joins the build. CMake installs the files that Meson installs, and refuses wrong uses.
#
# usage: cmake.sh source-directory
# CC, MESON, CMAKE and PKG_CONFIG name the tools. Skipped (77) without CMake; with CI=true that fails.
# shellcheck disable=SC2016,SC2086,SC2317 # CMake's variables; $meson may be several words; functions passed on
set -eu

source=$(cd "$1" && pwd)
meson=${MESON:-meson}
cmake=${CMAKE:-cmake}
pkg_config=${PKG_CONFIG:-pkg-config}
export CC="${CC:-cc}"
failed=0

if ! command -v "$cmake" >/dev/null 2>&1; then
    echo "SKIPPED: no $cmake"
    [ "${CI:-}" = true ] && exit 1
    exit 77
fi

unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS DESTDIR MAKEFLAGS CMAKE_PREFIX_PATH PKG_CONFIG_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "FAILED: $*"
    failed=1
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

# program NAME COMMANDS: a project in $work/NAME that builds the test's program with these CMake commands
program() {
    mkdir "$work/$1"
    cp "$source/tests/consumer.c" "$work/$1/"
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
    quietly "$name" "$cmake" -S "$work/$name" -B "$work/$name-build" "$@"
    quietly "$name" "$cmake" --build "$work/$name-build" --parallel 2
    if "$work/$name-build/consumer"; then
        echo "ok: $what"
    else
        fail "$what"
    fi
}

# ---- installed by Meson and by CMake, with DESTDIR, and moved ----

version=$(sed -n 's/^#define NPUQ_VERSION "\(.*\)"$/\1/p' "$source/include/npuquant/version.h")
major=${version%%.*}
minor=${version#*.}
minor=${minor%%.*}
patch=${version##*.}

quietly meson $meson setup "$work/meson" "$source" --prefix=/usr --libdir=lib --buildtype=debug -Dtests=false \
    -Dpython=disabled -Dbench=false -Dexamples=false
quietly meson env DESTDIR="$work/meson-destination" $meson install -C "$work/meson"
mkdir "$work/moved"
mv "$work/meson-destination/usr" "$work/moved/meson"
# As on Debian, where libraries are one folder deeper.
quietly meson $meson configure "$work/meson" --libdir=lib/deep
quietly meson env DESTDIR="$work/meson-destination" $meson install -C "$work/meson"
mv "$work/meson-destination/usr" "$work/moved/meson-deep"

for linkage in shared static; do
    on=$([ $linkage = shared ] && echo ON || echo OFF)
    quietly cmake "$cmake" -S "$source" -B "$work/cmake-$linkage" -DBUILD_SHARED_LIBS="$on" \
        -DCMAKE_BUILD_TYPE=Debug -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR=lib
    quietly cmake "$cmake" --build "$work/cmake-$linkage" --parallel 2
    quietly cmake env DESTDIR="$work/cmake-destination-$linkage" "$cmake" --install "$work/cmake-$linkage"
    mv "$work/cmake-destination-$linkage/usr" "$work/moved/cmake-$linkage"
done

(cd "$work/moved/meson" && find . ! -type d | sort) >"$work/meson-files"
(cd "$work/moved" && (cd cmake-shared && find . ! -type d) && (cd cmake-static && find . ! -type d)) |
    sort -u >"$work/cmake-files"
if diff "$work/meson-files" "$work/cmake-files"; then
    echo "ok: CMake (>) installs the files that Meson (<) installs"
else
    fail "CMake (>) does not install the files that Meson (<) installs"
fi
for file in npuquant-config.cmake npuquant-config-version.cmake; do
    if diff "$work/moved/meson/lib/cmake/npuquant/$file" "$work/moved/cmake-shared/lib/cmake/npuquant/$file"; then
        echo "ok: the same $file"
    else
        fail "$file of Meson (<) and CMake (>) differ"
    fi
done
if grep -r -F "$work" "$work/moved" --include='*.cmake' --include='*.pc'; then
    fail "an installed file names the folder where it was built"
fi

# The shared libraries export the same symbols. A library with all of CMake's archive exports none of them.
exports() {
    ${NM:-nm} -D --defined-only "$1" | awk '{ print $2, $3 }' | sort
}
if [ -e "$work/moved/meson/lib/libnpuquant.so" ]; then
    exports "$work/moved/meson/lib/libnpuquant.so" >"$work/meson-exports"
    exports "$work/moved/cmake-shared/lib/libnpuquant.so" >"$work/cmake-exports"
    if grep -q npuq_ "$work/meson-exports" && diff "$work/meson-exports" "$work/cmake-exports"; then
        echo "ok: CMake's library (>) exports what Meson's (<) exports"
    else
        fail "CMake's library (>) does not export what Meson's (<) exports"
    fi
    $CC -shared -o "$work/plugin.so" -Wl,--whole-archive "$work/moved/cmake-static/lib/libnpuquant.a" \
        -Wl,--no-whole-archive
    if exports "$work/plugin.so" | grep npuq_; then
        fail "a library that CMake's archive is linked into exports functions of npuquant"
    else
        echo "ok: nothing is exported of CMake's archive"
    fi
fi

program find 'find_package(npuquant ${VERSION} REQUIRED)
target_link_libraries(consumer PRIVATE npuquant::npuquant${LINKAGE})'
prefix="-DCMAKE_PREFIX_PATH=$work/moved"
runs find "find_package, Meson's, shared" "$prefix/meson" -DVERSION="$version"
program documented "$(lines find_package)"
runs documented "find_package as documented" "$prefix/meson"
runs find "find_package, Meson's, static" "$prefix/meson" -DLINKAGE=_static
runs find "find_package, Meson's, a deeper folder" -Dnpuquant_DIR="$work/moved/meson-deep/lib/deep/cmake/npuquant"
runs find "find_package, CMake's, shared" "$prefix/cmake-shared" -DVERSION="$version"
runs find "find_package, CMake's, static" "$prefix/cmake-static" -DLINKAGE=_static
runs find "find_package, CMake's archive where there is nothing else" "$prefix/cmake-static"

# A second copy, with a prefix: the program only links if the package sets NPUQ_PREFIX.
for linkage in ON OFF; do
    quietly prefix "$cmake" -S "$source" -B "$work/prefix-$linkage" -DNPUQ_PREFIX=engine_ -DBUILD_SHARED_LIBS=$linkage \
        -DCMAKE_BUILD_TYPE=Debug -DCMAKE_INSTALL_PREFIX="$work/moved/prefix-$linkage" -DCMAKE_INSTALL_LIBDIR=lib
    quietly prefix "$cmake" --build "$work/prefix-$linkage"
    quietly prefix "$cmake" --install "$work/prefix-$linkage"
    runs find "find_package, NPUQ_PREFIX, BUILD_SHARED_LIBS=$linkage" "$prefix/prefix-$linkage"
    if ${NM:-nm} -g --defined-only "$work/moved/prefix-$linkage"/lib/libnpuquant.[as]* 2>/dev/null |
        awk 'NF == 3 && $2 == "T" { print $3 }' | grep -v '^engine_npuq_'; then
        fail "names without a prefix, BUILD_SHARED_LIBS=$linkage"
    fi
done

# refuses WHAT MESSAGE COMMAND...: the command must fail with the message
refuses() {
    what=$1
    message=$2
    shift 2
    if "$@" >"$work/refused.log" 2>&1; then
        fail "$what is not refused"
    elif tr -s ' \n' ' ' <"$work/refused.log" | grep -q "$message"; then
        echo "ok: $what is refused"
    else
        cat "$work/refused.log"
        fail "$what is refused with another message"
    fi
}

find_version() {
    rm -rf "$work/version"
    "$cmake" -S "$work/find" -B "$work/version" "$prefix/meson" -DVERSION="$1"
}
series=$major.$minor
next=$((minor + 1))
for wanted in "$series" "$series...$series" "$series...<$major.$next" "$version;EXACT"; do
    if [ "$wanted" = "$series...$series" ] && [ "$patch" != 0 ]; then
        continue
    fi
    quietly version find_version "$wanted"
    echo "ok: find_package takes $version for $wanted"
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

# pkg_config_runs WHAT FOLDER OPTIONS...: the program, with pkg-config's flags for a moved library
pkg_config_runs() {
    what=$1
    folder=$work/moved/$2
    shift 2
    flags=$(PKG_CONFIG_PATH=$folder/pkgconfig $pkg_config "$@" --cflags --libs npuquant)
    if $CC "$source/tests/consumer.c" -o "$work/consumer" $flags && LD_LIBRARY_PATH=$folder "$work/consumer"; then
        echo "ok: pkg-config, $what"
    else
        fail "pkg-config, $what: $flags"
    fi
}

if $pkg_config --version >/dev/null 2>&1; then
    pkg_config_runs "Meson's" meson/lib
    pkg_config_runs "Meson's, --define-prefix" meson/lib --define-prefix
    pkg_config_runs "Meson's, a deeper folder" meson-deep/lib/deep
    pkg_config_runs "CMake's" cmake-shared/lib
    pkg_config_runs "CMake's, --define-prefix" cmake-shared/lib --define-prefix
    pkg_config_runs "CMake's archive" cmake-static/lib
    pkg_config_runs "CMake's with a prefix" prefix-ON/lib
else
    echo "SKIPPED: no $pkg_config"
    [ "${CI:-}" = true ] && failed=1
fi

# ---- a copy of the source in the build ----

program subdirectory "$(lines add_subdirectory)"
ln -s "$source" "$work/subdirectory/npuquant"
runs subdirectory "add_subdirectory"
runs subdirectory "add_subdirectory, shared" -DBUILD_SHARED_LIBS=ON
runs subdirectory "add_subdirectory, NPUQ_PREFIX" -DNPUQ_PREFIX=engine_ -DCMAKE_BUILD_TYPE=Debug
runs subdirectory "add_subdirectory, no backends" -DNPUQ_AVX2=OFF -DNPUQ_AVX512=OFF -DNPUQ_NEON=OFF \
    -DNPUQ_GENERIC=OFF
quietly subdirectory env DESTDIR="$work/nothing" "$cmake" --install "$work/subdirectory-build"
if [ -e "$work/nothing" ]; then
    fail "a part of another project installs its library"
fi

program fetch "$(lines 'include(FetchContent)')"
runs fetch "FetchContent as documented, from here" -DFETCHCONTENT_SOURCE_DIR_NPUQUANT="$source"
if ! grep -q "GIT_TAG v$version)\$" "$work/fetch/CMakeLists.txt"; then
    fail "docs/embedding.md fetches another version than $version"
fi

# The project's own shared library, which exports the functions; with options that projects set for all code.
program exporting 'add_subdirectory(npuquant)
target_link_libraries(consumer PRIVATE npuquant::npuquant)
add_library(mine STATIC mine.c)
target_link_libraries(mine PUBLIC npuquant::npuquant)
install(TARGETS mine EXPORT mine ARCHIVE DESTINATION lib)
install(EXPORT mine DESTINATION lib/cmake/mine)
install(FILES mine-config.cmake DESTINATION lib/cmake/mine)'
ln -s "$source" "$work/exporting/npuquant"
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
quietly exporting "$cmake" -DNPUQ_INSTALL=ON "$work/exporting-build"
quietly exporting "$cmake" --install "$work/exporting-build"
(cd "$work/exported" && find . ! -type d ! -name '*mine*' | sort) >"$work/exported-files"
if (cd "$work/moved/cmake-static" && find . ! -type d | sort) | diff - "$work/exported-files"; then
    echo "ok: with NPUQ_INSTALL a project (>) installs what npuquant (<) installs alone"
else
    fail "with NPUQ_INSTALL a project (>) does not install what npuquant (<) installs alone"
fi
program dependent 'find_package(mine REQUIRED)
target_link_libraries(consumer PRIVATE mine)'
runs dependent "find_package of what was exported" -DCMAKE_PREFIX_PATH="$work/exported"

# The archive must have the kernel tables of every backend that Meson builds.
tables() {
    ${NM:-nm} -g --defined-only "$1" | awk '$3 ~ /^npuq_rows_/ { print $3 }' | sort
}
if tables "$work/moved/meson/lib/libnpuquant.a" >"$work/meson-tables" 2>/dev/null; then
    tables "$work/moved/cmake-static/lib/libnpuquant.a" >"$work/cmake-tables"
    if [ -s "$work/meson-tables" ] && diff "$work/meson-tables" "$work/cmake-tables"; then
        echo "ok: CMake builds the backends that Meson builds: $(tr '\n' ' ' <"$work/cmake-tables")"
    else
        fail "CMake (>) does not build the backends that Meson (<) builds"
    fi
fi

refuses "-ffast-math" 'cannot be built with -ffast-math' \
    "$cmake" -S "$source" -B "$work/refused" -DCMAKE_C_FLAGS=-ffast-math
refuses "-Ofast for this configuration" 'cannot be built with -ffast-math' \
    "$cmake" -S "$source" -B "$work/fast-release" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-Ofast
program fast 'add_compile_options(-ffast-math)
add_subdirectory(npuquant)'
ln -s "$source" "$work/fast/npuquant"
refuses "-ffast-math for all of a project" 'cannot be built with -ffast-math' \
    "$cmake" -S "$work/fast" -B "$work/fast-build"
other=$([ "$($CC -dumpmachine | cut -d- -f1)" = aarch64 ] && echo AVX2 || echo NEON)
refuses "a backend of another architecture" "NPUQ_$other: needs" \
    "$cmake" -S "$source" -B "$work/other" "-DNPUQ_$other=ON"

exit $failed
