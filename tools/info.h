/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPUQUANT_INFO_H
#define NPUQUANT_INFO_H

/* Prints the first lines of a bug report. */
void print_info(void);

#endif
