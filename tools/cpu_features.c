/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu_features.h"

#include <stdio.h>

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)

#include <cpuid.h>

/* The builtin takes literals only. */
#define PRINT_IF_SUPPORTED(feature) (void)printf("%s", __builtin_cpu_supports(feature) ? " " feature : "")

void print_cpu_features(void)
{
    unsigned eax, ebx, ecx = 0, edx;

    __builtin_cpu_init();
    (void)printf("CPU features:");
    PRINT_IF_SUPPORTED("sse2");
    PRINT_IF_SUPPORTED("sse4.1");
    PRINT_IF_SUPPORTED("avx");
    PRINT_IF_SUPPORTED("avx2");
    PRINT_IF_SUPPORTED("fma");
    /* Older compilers have no name for this feature. */
    (void)printf("%s", __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) ? " f16c" : "");
    PRINT_IF_SUPPORTED("avx512f");
    PRINT_IF_SUPPORTED("avx512bw");
    PRINT_IF_SUPPORTED("avx512vl");
    PRINT_IF_SUPPORTED("avx512dq");
    (void)printf("\n");
}

#elif defined(__aarch64__) && defined(__linux__)

#include <asm/hwcap.h>
#include <sys/auxv.h>

void print_cpu_features(void)
{
    const unsigned long capabilities = getauxval(AT_HWCAP);

    (void)printf("CPU features:%s%s%s%s\n", capabilities & HWCAP_ASIMD ? " asimd" : "",
                 capabilities & HWCAP_FPHP ? " fphp" : "", capabilities & HWCAP_ASIMDHP ? " asimdhp" : "",
                 capabilities & HWCAP_SVE ? " sve" : "");
}

#else

void print_cpu_features(void)
{
    (void)printf("CPU features: not known on this system\n");
}

#endif
