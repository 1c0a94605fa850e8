/* SPDX-License-Identifier: BSD-3-Clause */
#include "vec_avx2.h"

#include "row_kernels.h"

const npuq_row_kernels npuq_rows_avx2 = NPUQ_ROW_TABLE;
