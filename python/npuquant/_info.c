/* SPDX-License-Identifier: BSD-3-Clause */
/* What `npuquant info` says of the CPU and of the build. */
#include "_native.h"

#include <tile/memory_plan.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

/* The names of the CPU's features that kernels use, separated by spaces; null where the system does not tell. */
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)

#include <cpuid.h>

static PyObject *cpu_features(void)
{
    unsigned eax, ebx, ecx = 0, edx;
    const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);

    __builtin_cpu_init();
/* The builtin takes literals only. */
#define NAME_IF(feature) __builtin_cpu_supports(feature) ? feature " " : ""
    /* Older compilers have no name for f16c. */
    return PyUnicode_FromFormat("%s%s%s%s%s%s%s%s%s%s", NAME_IF("sse2"), NAME_IF("sse4.1"), NAME_IF("avx"),
                                NAME_IF("avx2"), NAME_IF("fma"), f16c ? "f16c " : "", NAME_IF("avx512f"),
                                NAME_IF("avx512bw"), NAME_IF("avx512vl"), NAME_IF("avx512dq"));
#undef NAME_IF
}

#elif defined(__aarch64__) && defined(__linux__)

#include <asm/hwcap.h>
#include <sys/auxv.h>

static PyObject *cpu_features(void)
{
    const unsigned long has = getauxval(AT_HWCAP);

    return PyUnicode_FromFormat("%s%s%s%s", has & HWCAP_ASIMD ? "asimd " : "", has & HWCAP_FPHP ? "fphp " : "",
                                has & HWCAP_ASIMDHP ? "asimdhp " : "", has & HWCAP_SVE ? "sve " : "");
}

#else

static PyObject *cpu_features(void)
{
    return PyUnicode_FromString("not known on this system");
}

#endif

/* info(): a dictionary of the CPU's features, the values that the library takes for this CPU, and the compiler. */
static PyObject *info(PyObject *module, PyObject *none)
{
    const npuq_tuning *t = npuq_find_tuning();

    (void)module;
    (void)none;
    return Py_BuildValue("{s:N,s:s,s:{s:s,s:n,s:i,s:i,s:O,s:n,s:i}}", "features", cpu_features(), "compiler", COMPILER,
                         "tuning", "name", t->name, "cached_bytes", (Py_ssize_t)t->cached_bytes, "prefetch_bytes",
                         t->prefetch_bytes, "read_streams", t->cached.read_streams, "rows_to_l2",
                         t->rows_to_l2 ? Py_True : Py_False, "near_bytes", (Py_ssize_t)t->near_bytes,
                         "near_prefetch_bytes", t->near_prefetch_bytes);
}

PyMethodDef info_methods[] = {{"info", info, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
