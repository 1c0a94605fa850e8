/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of strided tiles: what is gathered for a kernel, and what is scattered after it. */
#ifndef NPUQ_GATHER_H
#define NPUQ_GATHER_H

#include <stdbool.h>
#include <stddef.h>

/* Element (row, column) is at data + row * row_stride + column * col_stride; steps are bytes. */
typedef struct npuq_place {
    char *data;
    ptrdiff_t row_stride;
    ptrdiff_t col_stride;
} npuq_place;

static inline ptrdiff_t npuq_distance(ptrdiff_t step)
{
    return step < 0 ? -step : step;
}

/* Whether the elements of a column lie closer together than those of a row. */
static inline bool npuq_are_column_major(ptrdiff_t row_stride, ptrdiff_t col_stride)
{
    return row_stride != 0 && npuq_distance(row_stride) < npuq_distance(col_stride);
}

/* Copies elements of 1, 2 or 4 bytes. The bytes between them may belong to another thread: they are never written, and
 * in the terms of C never read. `to` and `from` share no memory. */
void npuq_copy_tile(npuq_place to, npuq_place from, size_t size, size_t rows, size_t cols);
void npuq_copy_row(char *to, ptrdiff_t to_step, const char *from, ptrdiff_t from_step, size_t size, size_t n);

#endif
