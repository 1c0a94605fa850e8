/* SPDX-License-Identifier: BSD-3-Clause */
/* The quantisation of rows with which fused operators end. The library has no such function. */
#ifndef NPUQUANT_ROW_QUANT_H
#define NPUQUANT_ROW_QUANT_H

#include <npuquant/npuquant.h>

/* v is float32, float16 or bfloat16, y int8 of its shape, scale float32, one for each row. All are contiguous, and a
 * row has an element or more. rule is an enum rule; the executor may be null. Returns NPUQ_OK. */
npuq_status row_quant(const npuq_tensor *v, int32_t rule, const npuq_tensor *y, const npuq_tensor *scale,
                      const npuq_executor *executor);

#endif
