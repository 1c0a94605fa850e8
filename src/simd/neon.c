/* SPDX-License-Identifier: BSD-3-Clause */
#include "vec_neon.h"
#define NPUQ_KERNEL(VERB, NAME) VERB##_##NAME##_neon
#include "row_kernels.h"

const npuq_row_kernels npuq_rows_neon = NPUQ_ROW_TABLE;
