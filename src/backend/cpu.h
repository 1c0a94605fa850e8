/* SPDX-License-Identifier: BSD-3-Clause */
/* What this CPU, and the operating system on it, can run. */
#ifndef NPUQ_CPU_H
#define NPUQ_CPU_H

#include <npuquant/npuquant.h>

/* Whether the instructions that a backend is compiled for can be executed here. */
bool npuq_cpu_runs(npuq_backend backend);

#endif
