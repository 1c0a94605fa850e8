/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPUQUANT_CPU_FEATURES_H
#define NPUQUANT_CPU_FEATURES_H

/* Prints one line with those features of the CPU that backends are about. The library decides for itself: this is for
 * the reader of a bug report. */
void print_cpu_features(void);

#endif
