/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short way of small calls. Where tensors are dense and small, all checks come to a few comparisons. It refuses
 * nothing and makes no errors: what it is not sure of takes the general way, which gives the same bits for whatever it
 * accepts.
 */
#ifndef NPUQ_DENSE_H
#define NPUQ_DENSE_H

#include "../view/view.h"

/* No operator makes several units of work of so few elements; beside the time of more the general way is short. */
enum { NPUQ_DENSE_ELEMENTS = 32768 };

/* Parameters by column that are converted at once, as many as there is room for on the stack. */
enum { NPUQ_DENSE_PARAMS = 4096 };

/* x and y of a call as rows, and where x and what is written lie. */
typedef struct npuq_dense {
    size_t rows;
    size_t cols;
    size_t count;
    npuq_span memory[4]; /* x, y, and two more at most */
} npuq_dense;

/* Whether x and y have these types (NPUQ_TAKES_...), lie in memory of their own, row-major without gaps, y in the shape
 * that x asks for, neither empty nor large. There is one unit of work, so that an executor would not be used. */
bool npuq_dense_rows(npuq_dense *dense, const npuq_tensor *x, unsigned x_dtypes, const npuq_tensor *y,
                     unsigned y_dtypes, const npuq_executor *executor);

/* Whether another tensor has one of these types and this shape, lies row-major without gaps, and apart from what is
 * written; if it is written itself, apart from x too. All that are written come before the others. */
bool npuq_dense_operand(npuq_dense *dense, const npuq_tensor *tensor, unsigned takes, int ndim, const int64_t *shape,
                        bool written);

/* The same for a tensor of one dimension that has one element, or one for each column, and is only read. */
bool npuq_dense_columns(npuq_dense *dense, const npuq_tensor *tensor, unsigned takes);

#endif
