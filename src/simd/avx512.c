/* SPDX-License-Identifier: BSD-3-Clause */
#include "vec_avx512.h"

#include "row_kernels.h"

const npuq_row_kernels npuq_rows_avx512 = NPUQ_ROW_TABLE;

/* The same but for what goes to bfloat16. */
#define dequant_bf16_i8  convert_bf16_i8
#define dequant_bf16_i4  convert_bf16_i4
#define dequant_bf16_i32 convert_bf16_i32
const npuq_row_kernels npuq_rows_avx512_bf16 = NPUQ_ROW_TABLE;
