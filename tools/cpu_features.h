/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPUQUANT_CPU_FEATURES_H
#define NPUQUANT_CPU_FEATURES_H

/* Prints a line with the CPU features that backends need, for the reader of a bug report. The library decides for
 * itself. */
void print_cpu_features(void);

#endif
