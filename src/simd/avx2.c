/* SPDX-License-Identifier: BSD-3-Clause */
#include "vec_avx2.h"
#define NPUQ_KERNEL(VERB, NAME) VERB##_##NAME##_avx2
#include "row_kernels.h"

const npuq_row_kernels npuq_rows_avx2 = NPUQ_ROW_TABLE;
