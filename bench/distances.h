/* SPDX-License-Identifier: BSD-3-Clause */
/* How far ahead to prefetch: the row kernels from memory, with several distances in turns. */
#ifndef NPUQ_BENCH_DISTANCES_H
#define NPUQ_BENCH_DISTANCES_H

#include "machine.h"
#include "timing.h"

/* Prints a table, of rows with at most max_elements together. False if there is too little memory, or if a result
 * differs from the reference's; stderr has the reason. */
bool distances_report(const struct machine *machine, const struct timing *timing, double max_elements);

#endif
