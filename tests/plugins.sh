#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Several versions of the library in one process: plugins with the archive or the single file, in programs that export
# another version's functions in every possible way; and, by prefixes, several versions in one program. The shared
# library calls nobody else's functions.
#
# usage: plugins.sh source-directory build-directory
# CC, CXX and NM name the tools. A missing CXX is skipped; with CI=true that fails. Only for ELF: skipped (77) without
# libnpuquant.so.
# shellcheck disable=SC2086 # tools may be several words
set -eu

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
cc=${CC:-cc}
cxx=${CXX:-c++}
nm=${NM:-nm}
failed=0

if [ ! -e "$build/src/libnpuquant.so" ]; then
    echo "SKIPPED: the shared library is no libnpuquant.so here"
    exit 77
fi

unset CFLAGS CPPFLAGS LDFLAGS LD_LIBRARY_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"

fail() {
    echo "FAILED: $*"
    failed=1
}

version=$(sed -n 's/^#define NPUQ_VERSION "\(.*\)"$/\1/p' "$source/include/npuquant/version.h")

# single VERSION FLAGS...: VERSION.o, a single file of this version
single() {
    mkdir -p "$1/npuquant"
    cp "$build/single-file/npuquant.c" "$1/npuquant/"
    sed "s/^#define NPUQ_VERSION \".*\"/#define NPUQ_VERSION \"$1\"/" "$build/single-file/npuquant.h" \
        >"$1/npuquant/npuquant.h"
    number=$1
    shift
    $cc -O0 -fPIC -DNPUQ_NO_SIMD "$@" -c "$number/npuquant/npuquant.c" -o "$number.o"
}
single 8.8.8
single 9.9.9 '-DNPUQ_API=__attribute__((visibility("default")))'

# ---- nothing is exported of what is linked in ----

cat >plugin.c <<'EOF2'
#include <npuquant/npuquant.h>

#ifdef __cplusplus
extern "C"
#endif
const char *plugin_version(void);

const char *plugin_version(void)
{
    const float x[2] = {1.5f, -2.5f};
    const float one = 1.0f;
    int8_t y[2] = {99, 99};
    const npuq_tensor x_view = npuq_vector(x, NPUQ_FLOAT32, 2);
    const npuq_tensor scales = npuq_vector(&one, NPUQ_FLOAT32, 1);
    const npuq_tensor y_view = npuq_vector(y, NPUQ_INT8, 2);

    if (npuq_quantize(&x_view, &scales, NULL, -1, true, &y_view, NULL) != NPUQ_OK || y[0] != 2 || y[1] != -2) {
        return npuq_last_error();
    }
    return npuq_version();
}
EOF2

# plugin NAME FILES...: with and without NPUQ_STATIC, which changes nothing here
plugin() {
    name=$1
    shift
    $cc -fPIC -shared "-I$source/include" plugin.c "$@" -lm -o "$name.so"
}
archive=$build/src/libnpuquant.a
plugin archive "$archive"
plugin archive-static -DNPUQ_STATIC "$archive"
plugin whole-archive -Wl,--whole-archive "$archive" -Wl,--no-whole-archive
plugin single 8.8.8.o
plugin exporting 9.9.9.o

# exports FILE: the library's functions that FILE exports
exports() {
    $nm -D --defined-only "$1" | awk '{ print $3 }' | grep npuq_
}
if $nm -g --defined-only "$archive" | awk 'NF == 3 && $3 !~ /^npuq_/ { print $3; found = 1 } END { exit !found }'; then
    fail "the archive's global names (above) should begin with npuq_"
fi
for file in archive archive-static whole-archive single; do
    if exports $file.so; then
        fail "the plugin $file.so exports functions of npuquant (above)"
    else
        echo "ok: the plugin $file.so exports nothing of npuquant"
    fi
done
$cc -fPIC -shared -fvisibility=hidden -DNPUQ_STATIC '-DNPUQ_API=__attribute__((visibility("default")))' \
    "-I$source/include" "$source/src/status.c" -o status.so
for file in exporting status; do
    exports $file.so | grep -q -x npuq_last_error || fail "$file.so: NPUQ_API marks nothing as exported"
done

# ---- every plugin has the version that was linked into it ----

cat >program.c <<'EOF2'
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef LINKED
const char *npuq_version(void);
#endif

/* usage: program [plugin version]...: all loaded into the names of the process, before the first is asked */
int main(int count, char *arguments[])
{
    void *plugins[16];
    int failed = 0;

    for (int i = 1; i + 1 < count; i += 2) {
        plugins[i] = dlopen(arguments[i], RTLD_NOW | RTLD_GLOBAL);
        if (!plugins[i]) {
            puts(dlerror());
            return 1;
        }
    }
    for (int i = 1; i + 1 < count; i += 2) {
        const char *(*version)(void);
        *(void **)&version = dlsym(plugins[i], "plugin_version");
        if (strcmp(version(), arguments[i + 1]) != 0) {
            printf("%s says %s, not %s\n", arguments[i], version(), arguments[i + 1]);
            failed = 1;
        }
    }
#ifdef LINKED
    if (strcmp(npuq_version(), LINKED) != 0) {
        printf("the program says %s, not " LINKED "\n", npuq_version());
        failed = 1;
    }
#endif
    return failed;
}
EOF2

# keeps_apart WHAT FLAGS...: a program linked with these flags, with all plugins
first="./exporting.so 9.9.9"
keeps_apart() {
    what=$1
    shift
    $cc program.c "$@" -o program -ldl -lm
    if LD_LIBRARY_PATH=$work ./program $first ./archive.so "$version" ./archive-static.so "$version" \
        ./whole-archive.so "$version" ./single.so 8.8.8; then
        echo "ok: $what: every plugin has its own version"
    else
        fail "$what"
    fi
}
$cc -shared 9.9.9.o -lm -o libother.so
keeps_apart "another plugin is loaded RTLD_GLOBAL"
keeps_apart "the program links a shared library" -DLINKED='"9.9.9"' libother.so
keeps_apart "the program links an archive and exports it (-rdynamic)" -DLINKED='"9.9.9"' -rdynamic 9.9.9.o
keeps_apart "the program links the archive, -rdynamic" -DLINKED="\"$version\"" -rdynamic "$archive"
if exports program; then
    fail "a program with the archive and -rdynamic exports functions of npuquant (above)"
fi

# ---- several in one program ----

single 6.6.6 -DNPUQ_PREFIX=six_
single 7.7.7 -DNPUQ_PREFIX=seven_
for prefix in six_=6.6.6 seven_=7.7.7 =8.8.8; do
    $nm -g --defined-only ${prefix#*=}.o | awk '{ print $3 }' | sort >globals
    sed -n "s/^#define \(npuq_[a-z_]*\) .*/${prefix%=*}\1/p" "$source/include/npuquant/prefix.h" | sort |
        diff - globals || fail "${prefix#*=}.o has other global names (>) than the functions with a prefix (<)"
done

# engine VERSION COMPILER...: engine-VERSION.o, a part of the program with this version's header
engine() {
    number=$1
    shift
    # shellcheck disable=SC2145
    "$@" "-I$number" "-Dplugin_version=version_$(echo "$number" | tr . _)" plugin.c -c -o "engine-$number.o"
}
{
    engine 6.6.6 $cc -DNPUQ_PREFIX=six_ -O2
    if $cxx --version >/dev/null 2>&1; then
        engine 7.7.7 $cxx -x c++ -DNPUQ_PREFIX=seven_ -O2
    else
        echo "SKIPPED: C++: no $cxx"
        [ "${CI:-}" != true ] || failed=1
        engine 7.7.7 $cc -DNPUQ_PREFIX=seven_
    fi
    engine 8.8.8 $cc
    mkdir "$version"
    cp -R "$source/include/npuquant" "$version/"
    engine "$version" $cc
}

# one_program VERSION LIBRARY...: the prefixed versions, and this version without a prefix
one_program() {
    number=$1
    shift
    this=version_$(echo "$number" | tr . _)
    cat >one.c <<EOF2
#include <string.h>
const char *version_6_6_6(void), *version_7_7_7(void), *$this(void);
int main(void)
{
    return strcmp(version_6_6_6(), "6.6.6") || strcmp(version_7_7_7(), "7.7.7") || strcmp($this(), "$number");
}
EOF2
    if $cc one.c engine-6.6.6.o 6.6.6.o engine-7.7.7.o 7.7.7.o "engine-$number.o" "$@" -lm -o one && ./one; then
        echo "ok: one program has 6.6.6 and 7.7.7 with prefixes, and $number without"
    else
        fail "one program with 6.6.6 and 7.7.7, which have prefixes, and $number"
    fi
}
one_program 8.8.8 8.8.8.o
one_program "$version" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive

# ---- the shared library ----

# If the program exports a function, a plugin's export of the same name resolves to the program's.
first=
keeps_apart "the program links the shared library" -DLINKED="\"$version\"" "$build/src/libnpuquant.so" \
    "-Wl,-rpath,$build/src"
# A program keeps its own exported functions of the same names.
cat >names.c <<'EOF2'
#include <npuquant/npuquant.h>

static int calls;

npuq_tensor npuq_tensor_contiguous(const void *data, npuq_dtype dtype, int32_t ndim, const int64_t *shape)
{
    const npuq_tensor nothing = {0};

    (void)data, (void)dtype, (void)ndim, (void)shape;
    calls++;
    return nothing;
}

int main(void)
{
    const float x = 1;

    return npuq_vector(&x, NPUQ_FLOAT32, 1).ndim == 1 && calls == 0 ? 0 : 1;
}
EOF2
$cc -rdynamic "-I$source/include" names.c "$build/src/libnpuquant.so" "-Wl,-rpath,$build/src" -o names
if ./names; then
    echo "ok: the shared library calls its own functions"
else
    fail "the shared library calls a program's function of the same name"
fi

exit $failed
