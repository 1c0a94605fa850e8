/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NPUQUANT_INFO_H
#define NPUQUANT_INFO_H

/* What a bug report should begin with. */
void print_info(void);

#endif
