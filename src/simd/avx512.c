/* SPDX-License-Identifier: BSD-3-Clause */
#include "vec_avx512.h"
#define NPUQ_KERNEL(VERB, NAME) VERB##_##NAME##_avx512
#include "row_kernels.h"

const npuq_row_kernels npuq_rows_avx512 = NPUQ_ROW_TABLE;

/* The same table, with other kernels to bfloat16. */
const npuq_row_kernels npuq_rows_avx512_bf16 = NPUQ_ROW_TABLE_WITH(NPUQ_CONVERT_ENTRY);
