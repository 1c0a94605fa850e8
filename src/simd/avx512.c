/* SPDX-License-Identifier: BSD-3-Clause */
#include "vec_avx512.h"

#include "row_kernels.h"

const npuq_row_kernels npuq_rows_avx512 = NPUQ_ROW_TABLE;
