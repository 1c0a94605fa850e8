/* SPDX-License-Identifier: BSD-3-Clause */
/* The product of int8 matrices, between operators of the library, which has no product. */
#ifndef NPUQUANT_PRODUCT_H
#define NPUQUANT_PRODUCT_H

#include <npuquant/npuquant.h>

/* sums = x1 * x2 + bias, modulo 2^32.
 *
 * x1    INT8 [..., M, K], any view
 * x2    INT8 [..., K, N], any view whose rows are contiguous
 * bias  null, or INT32 [N]
 * sums  INT32 [..., M, N], contiguous; its leading dimensions are those of x1 and x2 */
void multiply(const npuq_tensor *x1, const npuq_tensor *x2, const npuq_tensor *bias, const npuq_tensor *sums,
              const npuq_executor *executor);

/* Copies INT8 elements of any view to a contiguous tensor of the same shape. */
void copy_rows(const npuq_tensor *from, const npuq_tensor *to);

#endif
