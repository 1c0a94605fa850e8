#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Several versions of the library in one process: plugins with the archive or the single file, in programs that export
# another version's functions in every possible way; and, by a prefix, several versions in one program. The shared
# library calls nobody else's functions.
#
# usage: plugins.sh source-directory build-directory
# Only for ELF: skipped (77) without libnpuquant.so.
# shellcheck disable=SC2086,SC2317 # tools may be several words; functions passed on
set -eu
# shellcheck source=tests/packaging.sh
. "$(dirname "$0")/packaging.sh"

source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
archive=$build/src/libnpuquant.a
if [ ! -e "$build/src/libnpuquant.so" ]; then
    echo "SKIPPED: the shared library is no libnpuquant.so here"
    exit 77
fi
cd "$work"

# single VERSION FLAGS...: VERSION.o, a single file of this version, and its header in the folder VERSION
single() {
    mkdir -p "$1/npuquant"
    cp "$build/single-file/npuquant.c" "$1/npuquant/"
    sed "s/^#define NPUQ_VERSION \".*\"/#define NPUQ_VERSION \"$1\"/" "$build/single-file/npuquant.h" \
        >"$1/npuquant/npuquant.h"
    number=$1
    shift
    $cc -O0 -fPIC -DNPUQ_NO_SIMD "$@" -c "$number/npuquant/npuquant.c" -o "$number.o"
}
single 7.7.7 -DNPUQ_PREFIX=seven_
single 8.8.8
exported='-DNPUQ_API=__attribute__((visibility("default")))'
single 9.9.9 "$exported"

# ---- nothing is exported of what is linked in ----

# plugin NAME HEADERS FLAGS AND FILES...
plugin() {
    name=$1
    headers=$2
    shift 2
    $cc -fPIC -shared -O2 -Dmain=plugin "-I$headers" "$source/tests/consumer.c" "$@" -lm -o "$name.so"
}
plugin archive "$source/include" "$archive"
plugin whole-archive "$source/include" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive
plugin single 8.8.8 8.8.8.o
plugin exporting 9.9.9 "$exported" 9.9.9.o
for file in archive whole-archive single; do
    exports_nothing $file.so
done
if $nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | grep -v '^npuq_'; then
    fail "the archive's global names (above) should begin with npuq_"
fi
$cc -fPIC -shared -fvisibility=hidden -DNPUQ_STATIC "$exported" "-I$source/include" \
    "$source/src/status.c" -o status.so
for file in exporting status; do
    exports $file.so | grep -q -x npuq_last_error || fail "$file.so: NPUQ_API marks nothing as exported"
done

# ---- every plugin has the version that was linked into it ----

cat >program.c <<'EOF2'
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#ifdef LINKED
int LINKED(void);
#endif

/* usage: program plugin...: all loaded into the names of the process, before the first is called */
int main(int count, char *plugins[])
{
    void *loaded[16];
    int failed = 0;

    for (int i = 1; i < count; i++) {
        loaded[i] = dlopen(plugins[i], RTLD_NOW | RTLD_GLOBAL);
        if (!loaded[i]) {
            puts(dlerror());
            return 1;
        }
    }
    for (int i = 1; i < count; i++) {
        int (*plugin)(void);
        *(void **)&plugin = dlsym(loaded[i], "plugin");
        puts(plugins[i]);
        failed |= plugin();
    }
#ifdef LINKED
    failed |= LINKED();
#endif
    return failed;
}
EOF2

# part NAME HEADERS FLAGS...: NAME.o, with tests/consumer.c as the function NAME, which fails with another version than
# that of these headers
part() {
    name=$1
    headers=$2
    shift 2
    $cc -fPIC -O2 "-Dmain=$name" "-I$headers" "$@" -c "$source/tests/consumer.c" -o "$name.o"
}

# keeps_apart WHAT PLUGINS FLAGS...: a program linked with these flags, with these plugins and those that export nothing
keeps_apart() {
    plugins=$2
    check "$1: every plugin has its own version" keep_apart "$@"
}
keep_apart() {
    shift 2
    $cc program.c "$@" -o program -ldl -lm &&
        LD_LIBRARY_PATH=$work ./program $plugins ./archive.so ./whole-archive.so ./single.so
}
part newer 9.9.9 "$exported"
part this "$source/include"
$cc -shared 9.9.9.o -lm -o libother.so
keeps_apart "another plugin is loaded RTLD_GLOBAL" ./exporting.so
keeps_apart "the program links a shared library" ./exporting.so -DLINKED=newer newer.o libother.so
keeps_apart "the program links an archive and exports it (-rdynamic)" ./exporting.so -DLINKED=newer newer.o \
    -rdynamic 9.9.9.o
keeps_apart "the program links the archive, -rdynamic" ./exporting.so -DLINKED=this this.o -rdynamic "$archive"
exports_nothing program
# If the program exports a function, a plugin's export of the same name resolves to the program's.
keeps_apart "the program links the shared library" "" -DLINKED=this this.o "$build/src/libnpuquant.so" \
    "-Wl,-rpath,$build/src"

# ---- several in one program ----

$nm -g --defined-only 7.7.7.o | awk '{ print $3 }' | sort >globals
functions | sed 's/^/seven_/' >prefixed
check "the single file's global names (>) are the functions with the prefix (<)" diff prefixed globals
part seven 7.7.7 -DNPUQ_PREFIX=seven_
part eight 8.8.8
echo 'int seven(void), OTHER(void); int main(void) { return seven() || OTHER(); }' >two.c
check "one program has 7.7.7 with a prefix, and 8.8.8" \
    program_runs $cc -DOTHER=eight two.c seven.o 7.7.7.o eight.o 8.8.8.o -lm
check "one program has 7.7.7 with a prefix, and the whole archive" \
    program_runs $cc -DOTHER=this two.c seven.o 7.7.7.o this.o -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -lm

# ---- a program keeps its own exported functions of the same names ----

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
check "the shared library calls its own functions" \
    program_runs $cc -rdynamic "-I$source/include" names.c "$build/src/libnpuquant.so" "-Wl,-rpath,$build/src"

exit $failed
