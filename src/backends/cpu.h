/* SPDX-License-Identifier: BSD-3-Clause */
/* What this CPU, and the operating system on it, can run. */
#ifndef NPUQ_CPU_H
#define NPUQ_CPU_H

#include <npuquant/npuquant.h>

/* Whether the instructions that a backend is compiled for can be executed here. */
bool npuq_cpu_runs(npuq_backend backend);

#if (defined(__x86_64__) || defined(__i386__)) && !defined(NPUQ_PLAIN_C)
/* Whether a CPU that runs NPUQ_BACKEND_AVX512 has AVX512_BF16, too. */
bool npuq_cpu_converts_bf16(void);
#endif

/* Who made the CPU, and its number among theirs; all 0 where that is not known. */
typedef enum npuq_cpu_vendor { NPUQ_CPU_UNKNOWN, NPUQ_CPU_AMD, NPUQ_CPU_INTEL } npuq_cpu_vendor;
typedef struct npuq_cpu {
    npuq_cpu_vendor vendor;
    unsigned family;
    unsigned model;
} npuq_cpu;
npuq_cpu npuq_identify_cpu(void);

#endif
