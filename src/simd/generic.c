/* SPDX-License-Identifier: BSD-3-Clause */
/* The vectors of z14, where distributions begin with older machines: cpu.c asks for them. */
#if defined(__s390x__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=z14")
#endif

#include "vec_generic.h"
#define NPUQ_KERNEL(VERB, NAME) VERB##_##NAME##_generic
#include "row_kernels.h"

#if defined(__s390x__) && !defined(__clang__)
#pragma GCC pop_options
#endif

const npuq_row_kernels npuq_rows_generic = NPUQ_ROW_TABLE;
