/* SPDX-License-Identifier: BSD-3-Clause */
#include "dense.h"

/* Whether a tensor has one of these types, is dense, and lies apart from all memory noted from `others` on. */
static bool accept(npuq_dense *dense, const npuq_tensor *tensor, unsigned takes, size_t others, bool note)
{
    npuq_span span;

    if ((npuq_find_dtype(tensor->dtype)->set & takes) == 0 || !npuq_find_dense_span(tensor, &span)) {
        return false;
    }
    for (size_t i = others; i < dense->count; i++) {
        if (npuq_spans_meet(&span, &dense->memory[i])) {
            return false;
        }
    }
    if (note) {
        dense->memory[dense->count++] = span;
    }
    return true;
}

bool npuq_dense_rows(npuq_dense *dense, const npuq_tensor *x, unsigned x_dtypes, const npuq_tensor *y,
                     unsigned y_dtypes, const npuq_executor *executor)
{
    dense->count = 0;
    if (!x || !y || x->ndim < 1 || x->ndim > NPUQ_MAX_NDIM || y->ndim != x->ndim ||
        (executor && !executor->parallel_for) || !accept(dense, x, x_dtypes, 0, true) ||
        !accept(dense, y, y_dtypes, 0, true)) {
        return false;
    }
    const int last = x->ndim - 1;
    const int64_t cols = x->shape[last] * ((int64_t)1 << npuq_find_dtype(x->dtype)->log2_pack);
    int64_t rows = 1;

    for (int d = 0; d < last; d++) {
        if (x->shape[d] != y->shape[d]) {
            return false;
        }
        rows *= x->shape[d];
    }
    dense->rows = (size_t)rows;
    dense->cols = (size_t)cols;
    return cols == y->shape[last] * ((int64_t)1 << npuq_find_dtype(y->dtype)->log2_pack) &&
           rows * cols <= NPUQ_DENSE_ELEMENTS;
}

bool npuq_dense_operand(npuq_dense *dense, const npuq_tensor *tensor, unsigned takes, int ndim, const int64_t *shape,
                        bool written)
{
    if (!tensor || tensor->ndim != ndim) {
        return false;
    }
    for (int d = 0; d < ndim; d++) {
        if (tensor->shape[d] != shape[d]) {
            return false;
        }
    }
    return accept(dense, tensor, takes, written ? 0 : 1, written);
}

bool npuq_dense_columns(npuq_dense *dense, const npuq_tensor *tensor, unsigned takes)
{
    return tensor && tensor->ndim == 1 && (tensor->shape[0] == 1 || tensor->shape[0] == (int64_t)dense->cols) &&
           accept(dense, tensor, takes, 1, false);
}
