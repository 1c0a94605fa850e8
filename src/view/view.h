/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensors as arguments: what all operators check of them, in one place. Knows no arithmetic. */
#ifndef NPUQ_VIEW_H
#define NPUQ_VIEW_H

#include "../status.h"
#include "dtype.h"
#include "overlap.h"

/* One tensor argument of an operator, and what holds for it whatever the others are. */
typedef struct npuq_argument {
    const char *name;
    const npuq_tensor *tensor;
    unsigned dtypes; /* NPUQ_TAKES_... */
    int min_ndim;
    int max_ndim;
    enum { NPUQ_X, NPUQ_INPUT, NPUQ_OPTIONAL_INPUT, NPUQ_OUTPUT } role; /* NPUQ_X: the input that is computed on */
} npuq_argument;

/* For messages: 1 dimension, 2 dimensions. */
static inline const char *npuq_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* No object is larger. */
#define NPUQ_LARGEST_OBJECT (sizeof(void *) < 8 ? (int64_t)PTRDIFF_MAX : (int64_t)1 << 57)

/* Whether a tensor of a known dtype and at most NPUQ_MAX_NDIM dimensions needs no further check of its own: present,
 * aligned, not empty, row-major without gaps. Most are, and this costs a fraction of what finds out everything about
 * any other. */
static inline bool npuq_find_dense_span(const npuq_tensor *tensor, npuq_span *span)
{
    const size_t size = npuq_find_dtype(tensor->dtype)->size;
    const uintptr_t first = (uintptr_t)tensor->data;
    int64_t count = 1;

    for (int d = tensor->ndim - 1; d >= 0; d--) {
        const int64_t extent = tensor->shape[d];

        if (extent == 1) { /* whatever its stride */
            continue;
        }
        if (extent < 1 || tensor->strides[d] != count || __builtin_mul_overflow(count, extent, &count)) {
            return false;
        }
    }
    if (count > NPUQ_LARGEST_OBJECT / 8 || first == 0 || (first & (size - 1)) != 0 ||
        (uintptr_t)count * size - 1 > UINTPTR_MAX - first) {
        return false;
    }
    span->first = first;
    span->last = first + ((uintptr_t)count * size - 1);
    span->element = size;
    return true;
}

int64_t npuq_element_count(const npuq_tensor *tensor); /* of a tensor that passed npuq_check_layouts */

/* Each argument by itself: present, a dtype it takes, rank, no negative extent. */
npuq_status npuq_check_arguments(const char *op, const npuq_argument *arguments, size_t count);

/* The memory of all arguments, once their shapes are known good: data present and aligned, every element addressable,
 * x not one element repeated, no output overlapping itself or another argument. */
npuq_status npuq_check_layouts(const char *op, const npuq_argument *arguments, size_t count);

/* tensor has exactly this shape; the message names the rule. */
npuq_status npuq_check_shape(const char *op, const char *name, const npuq_tensor *tensor, int ndim,
                             const int64_t *shape, const char *rule);

/* y has x's shape, with the last extent, a multiple of 8, divided by 8 if y is QUINT4X2. */
npuq_status npuq_check_output_shape(const char *op, const npuq_tensor *x, const npuq_tensor *y);

/* y has x's shape, with the last extent times 8 if x is QUINT4X2. */
npuq_status npuq_check_unpacked_shape(const char *op, const npuq_tensor *x, const npuq_tensor *y);

npuq_status npuq_check_executor(const char *op, const npuq_executor *executor);

#endif
