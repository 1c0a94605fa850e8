/* SPDX-License-Identifier: BSD-3-Clause */
/* How far ahead to prefetch: the row kernels from memory, with several distances in turns. */
#ifndef NPUQ_BENCH_DISTANCES_H
#define NPUQ_BENCH_DISTANCES_H

#include "machine.h"
#include "timing.h"

/* Prints a table, of rows that have at most so many elements together. False if there is too little memory or a result
 * is not the reference's; stderr has the reason. */
bool distances_report(const struct machine *machine, const struct timing *timing, double max_elements);

#endif
