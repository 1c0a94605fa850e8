#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The shared library has the functions, versions and soname of debian/libnpuquant0.symbols, no more and no less. The
# build compares types and values with tests/test_abi.c, which is compiled here with changed headers: it must refuse
# each change.
#
# usage: abi.sh source-directory build-directory
# shellcheck disable=SC2086 # tools may be several words
set -eu
# shellcheck source=tests/packaging.sh
. "$(dirname "$0")/packaging.sh"

source=$1
library=$2/src/libnpuquant.so
recorded=$source/debian/libnpuquant0.symbols
[ -e "$library" ] || skip_all "the shared library is no libnpuquant.so here"

soname=$($readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\].*/\1/p')
[ "$soname" = "$(sed -n '1s/ .*//p' "$recorded")" ] || fail "the soname is $soname"

sed -n 's/^ \([^ ]*\) .*/\1/p' "$recorded" | sort >"$work/recorded"
$nm -D --defined-only --with-symbol-versions "$library" |
    sed 's/.* //; s/@@/@/; s/^[A-Z0-9_]*$/&@&/' | sort >"$work/exported"
check "the library (>) exports what is recorded (<)" diff "$work/recorded" "$work/exported"
refuses "a function that is not recorded" '> npuq_version@' \
    sh -c "sed '/^npuq_version@/d' '$work/recorded' | diff - '$work/exported'"
refuses "another version" '> npuq_version@' \
    sh -c "sed 's/NPUQUANT_0/NPUQUANT_9/' '$work/recorded' | diff - '$work/exported'"

# The functions of the header, those with a recorded type, and those with a recorded name.
functions >"$work/functions"
sed -n -e 's/^[a-z].*[ *]\(npuq_[a-z0-9_]*\)(.*/\1/p' -e 's/^BOTH(\([a-z0-9_]*\),.*/npuq_\1 npuq_prepare_\1/p' \
    "$source/tests/test_abi.c" | tr ' ' '\n' | grep -v _from_dlpack | sort >"$work/typed"
check "tests/test_abi.c has the functions of the header (<)" diff "$work/functions" "$work/typed"
check "debian/libnpuquant0.symbols has the functions of the header (<)" \
    sh -c "sed -n 's/^\(npuq_.*\)@.*/\1/p' '$work/recorded' | diff '$work/functions' -"

# notices WHAT MESSAGE SED-COMMAND: a change of the header
notices() {
    cp -R "$source/include" "$work/"
    sed "$3" "$source/include/npuquant/npuquant.h" >"$work/include/npuquant/npuquant.h"
    refuses "$1" "$2" $cc -std=c11 "-I$work/include" -c "$source/tests/test_abi.c" -o "$work/test_abi.o"
}
check "tests/test_abi.c" $cc -std=c11 "-I$source/include" -c "$source/tests/test_abi.c" -o "$work/test_abi.o"
notices "another type of a member" 'type of npuq_tensor.ndim' 's/int32_t ndim; /uint32_t ndim; /'
notices "a new member" 'size of npuq_executor' 's|^    void \*context; |    int more; void *context; |'
notices "another type of a function pointer" 'type of npuq_executor.parallel_for' \
    's/size_t count, void (\*task)/int count, void (*task)/'
notices "another value" 'value of NPUQ_ERROR_AXIS' 's/NPUQ_ERROR_AXIS = 5/NPUQ_ERROR_AXIS = 50/'
notices "a new enumerator" NPUQ_BACKEND_NEW 's/NPUQ_BACKEND_GENERIC = 4/&, NPUQ_BACKEND_NEW = 5/'
notices "another type of a parameter" npuq_call_units 's/npuq_call_units(const /npuq_call_units(/'

exit $failed
