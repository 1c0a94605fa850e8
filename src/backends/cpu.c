/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu.h"

#if defined(NPUQ_PLAIN_C) /* of the single file, which has no other backend then */

bool npuq_cpu_runs(npuq_backend backend)
{
    return backend == NPUQ_BACKEND_REF;
}

#elif defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

/* Register state that the operating system saves: without it, the instructions fault or lose their registers. */
static uint32_t saved_state(void)
{
    uint32_t low;
    uint32_t high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

enum {
    LEAF1_ECX_FMA = 1 << 12,
    LEAF1_ECX_OSXSAVE = 1 << 27,
    LEAF1_ECX_AVX = 1 << 28,
    LEAF1_ECX_F16C = 1 << 29,
    LEAF7_EBX_AVX2 = 1 << 5,
    LEAF7_EBX_AVX512F = 1 << 16,
    LEAF7_EBX_AVX512DQ = 1 << 17,
    LEAF7_EBX_AVX512BW = 1 << 30,
    LEAF7_1_EAX_AVX512_BF16 = 1 << 5,
    STATE_SSE_AVX = 0x06,
    STATE_AVX512 = 0xE6,
};
static const uint32_t LEAF7_EBX_AVX512VL = 1u << 31;

bool npuq_cpu_runs(npuq_backend backend)
{
    const uint32_t leaf1 = LEAF1_ECX_FMA | LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX | LEAF1_ECX_F16C;
    const uint32_t avx512 = LEAF7_EBX_AVX512F | LEAF7_EBX_AVX512DQ | LEAF7_EBX_AVX512BW | LEAF7_EBX_AVX512VL;
    uint32_t eax;
    uint32_t ebx;
    uint32_t ecx;
    uint32_t edx;

    if (backend == NPUQ_BACKEND_REF || backend == NPUQ_BACKEND_GENERIC) {
        return true; /* compiled for what everything else is compiled for */
    }
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || (ecx & leaf1) != leaf1) {
        return false;
    }
    const uint32_t state = saved_state();
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(ebx & LEAF7_EBX_AVX2)) {
        return false;
    }
    switch (backend) {
    case NPUQ_BACKEND_AVX2: return (state & STATE_SSE_AVX) == STATE_SSE_AVX;
    case NPUQ_BACKEND_AVX512: return (state & STATE_AVX512) == STATE_AVX512 && (ebx & avx512) == avx512;
    default: return false;
    }
}

bool npuq_cpu_converts_bf16(void)
{
    uint32_t eax;
    uint32_t ebx;
    uint32_t ecx;
    uint32_t edx;

    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & LEAF7_1_EAX_AVX512_BF16);
}

npuq_cpu npuq_identify_cpu(void)
{
    npuq_cpu cpu = {NPUQ_CPU_UNKNOWN, 0, 0};
    uint32_t eax;
    uint32_t ebx;
    uint32_t ecx;
    uint32_t edx;

    if (__get_cpuid(0, &eax, &ebx, &ecx, &edx)) {
        cpu.vendor = ecx == signature_AMD_ecx     ? NPUQ_CPU_AMD
                     : ecx == signature_INTEL_ecx ? NPUQ_CPU_INTEL
                                                  : NPUQ_CPU_UNKNOWN;
    }
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) {
        const uint32_t family = eax >> 8 & 0xF;

        cpu.family = family == 0xF ? family + (eax >> 20 & 0xFF) : family;
        cpu.model = (eax >> 4 & 0xF) | (family == 0x6 || family == 0xF ? eax >> 12 & 0xF0 : 0);
    }
    return cpu;
}

#elif defined(__s390x__) && defined(__linux__)

#include <sys/auxv.h>

/* The vectors of z14, with arithmetic on binary32, and a kernel that saves them. */
bool npuq_cpu_runs(npuq_backend backend)
{
    const unsigned long vector_enhancements = 1ul << 13; /* HWCAP_S390_VXRS_EXT, which not every C library names */

    return backend == NPUQ_BACKEND_REF ||
           (backend == NPUQ_BACKEND_GENERIC && (getauxval(AT_HWCAP) & vector_enhancements) != 0);
}

#elif defined(__riscv) && defined(__linux__)

#include <sys/auxv.h>

/* Whether the extension V has version 1.0: old kernels of vendors have the draft 0.7.1, with the same bit in AT_HWCAP.
 * Linux has this system call from 6.5 on, as it has V. Not every C library's headers have its name and numbers. */
static bool has_v_1_0(void)
{
    struct {
        int64_t key;
        uint64_t value;
    } pair = {.key = 4}; /* RISCV_HWPROBE_KEY_IMA_EXT_0 */
    register void *pairs __asm__("a0") = &pair;
    register long count __asm__("a1") = 1;
    register long cpu_count __asm__("a2") = 0; /* all */
    register void *cpus __asm__("a3") = 0;
    register long flags __asm__("a4") = 0;
    register long call __asm__("a7") = 258; /* riscv_hwprobe */

    __asm__ volatile("ecall" : "+r"(pairs) : "r"(count), "r"(cpu_count), "r"(cpus), "r"(flags), "r"(call) : "memory");
    return pairs == 0 && (pair.value & 1 << 2) != 0; /* RISCV_HWPROBE_IMA_V */
}

bool npuq_cpu_runs(npuq_backend backend)
{
    const unsigned long v = 1ul << ('V' - 'A'); /* this process may use it */

    return backend == NPUQ_BACKEND_REF ||
           (backend == NPUQ_BACKEND_GENERIC && (getauxval(AT_HWCAP) & v) != 0 && has_v_1_0());
}

#else

bool npuq_cpu_runs(npuq_backend backend)
{
#if defined(__aarch64__)
    return backend == NPUQ_BACKEND_REF || backend == NPUQ_BACKEND_NEON; /* part of the architecture's baseline */
#else
    return backend == NPUQ_BACKEND_REF || backend == NPUQ_BACKEND_GENERIC; /* as far as it is built */
#endif
}

#endif

#if defined(NPUQ_PLAIN_C) || (!defined(__x86_64__) && !defined(__i386__))

npuq_cpu npuq_identify_cpu(void)
{
    return (npuq_cpu){NPUQ_CPU_UNKNOWN, 0, 0};
}

#endif
