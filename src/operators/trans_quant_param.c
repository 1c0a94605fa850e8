/* SPDX-License-Identifier: BSD-3-Clause */
#include "../backend/dispatch.h"
#include "../view/view.h"
#include "../walk/fp_state.h"
#include "../walk/loop.h"
#include "../walk/params.h"

#include <inttypes.h>
#include <string.h>

static const char op[] = "trans_quant_param";

static npuq_status check_shapes(const npuq_tensor *scale, const npuq_tensor *offset, const npuq_tensor *y)
{
    const npuq_tensor *shape = scale; /* whose shape y has */

    for (int d = 0; d < scale->ndim; d++) {
        if (scale->shape[d] == 0) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "scale", "dimension %d is 0; expected no empty tensor", d);
        }
    }
    if (offset && scale->ndim == 2) {
        npuq_status status;

        if (scale->shape[0] != 1) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "scale",
                             "dimension 0 is %" PRId64 "; expected 1, as offset is given", scale->shape[0]);
        }
        status = npuq_check_shape(op, "offset", offset, 2, scale->shape, "the shape of scale");
        if (status != NPUQ_OK) {
            return status;
        }
    } else if (offset) {
        const int64_t n = scale->shape[0];

        if (offset->ndim != 1) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "offset", "has %" PRId32 " dimensions; expected 1, as scale has",
                             offset->ndim);
        }
        if (offset->shape[0] != 1 && (offset->shape[0] == 0 || (n != 1 && offset->shape[0] != n))) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "offset", "dimension 0 is %" PRId64 "; expected %s%" PRId64,
                             offset->shape[0], n == 1 ? "at least " : "1 or ", n);
        }
        shape = n == 1 ? offset : scale;
    }
    return npuq_check_shape(op, "y", y, shape->ndim, shape->shape,
                            shape == scale ? "the shape of scale" : "the shape of offset");
}

enum { SCALE, Y, OFFSET };
enum { TILE = 512 };

/* One row, a tile of columns at a time; whatever is not contiguous goes by the stack. */
static void pack_row(const npuq_row_kernels *kernels, const npuq_rect *rect, npuq_round_mode round_mode)
{
    uint32_t scales[TILE];
    float offsets[TILE + NPUQ_MAX_REPEAT];
    uint64_t words[TILE];
    const bool write_through = rect->col_step[Y] == (ptrdiff_t)sizeof *words;

    for (size_t col = 0; col < rect->cols; col += TILE) {
        const size_t n = rect->cols - col < TILE ? rect->cols - col : TILE;
        const npuq_params offset = {
            .data = rect->data[OFFSET], .dtype = NPUQ_FLOAT32, .step = rect->col_step[OFFSET], .repeat = 1};
        const npuq_params offset_here = npuq_params_from(&offset, col);
        char *y = rect->data[Y] + (ptrdiff_t)col * rect->col_step[Y];
        uint64_t *target = write_through ? (uint64_t *)(void *)y : words;

        for (size_t i = 0; i < n; i++) { /* as bits: a float copy may change a signalling NaN */
            memcpy(&scales[i], rect->data[SCALE] + (ptrdiff_t)(col + i) * rect->col_step[SCALE], sizeof *scales);
        }
        kernels->pack(scales, npuq_params_f32(kernels, &offset_here, n, offsets), target, n, round_mode);
        for (size_t i = 0; !write_through && i < n; i++) {
            memcpy(y + (ptrdiff_t)i * rect->col_step[Y], &words[i], sizeof *words);
        }
    }
}

/* One element serves all of y. */
static void add_parameter(npuq_loop *loop, int operand, const npuq_tensor *tensor)
{
    if (tensor->ndim == 1 && tensor->shape[0] == 1) {
        npuq_loop_along(loop, operand, tensor, -1, 0);
    } else {
        npuq_loop_operand(loop, operand, tensor);
    }
}

npuq_status npuq_trans_quant_param(const npuq_tensor *scale, const npuq_tensor *offset, npuq_round_mode round_mode,
                                   const npuq_tensor *y)
{
    const npuq_argument arguments[] = {
        {"scale", scale, NPUQ_TAKES_FLOAT32, 1, 2, NPUQ_INPUT},
        {"offset", offset, NPUQ_TAKES_FLOAT32, 1, 2, NPUQ_OPTIONAL_INPUT},
        {"y", y, NPUQ_TAKES_INT64 | NPUQ_TAKES_UINT64, 1, 2, NPUQ_OUTPUT},
    };
    const size_t count = sizeof arguments / sizeof arguments[0];
    npuq_status status;

    if ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK) {
        return status;
    }
    if (round_mode != NPUQ_ROUND_TRUNCATE && round_mode != NPUQ_ROUND_NEAREST) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "round_mode", "is %d; expected 0 or 1", (int)round_mode);
    }
    if ((status = check_shapes(scale, offset, y)) != NPUQ_OK ||
        (status = npuq_check_layouts(op, arguments, count)) != NPUQ_OK) {
        return status;
    }

    /* The parameters of a whole network are small next to one activation: no executor. */
    npuq_loop loop;

    npuq_loop_over(&loop, y, y->dtype);
    npuq_loop_operand(&loop, Y, y);
    add_parameter(&loop, SCALE, scale);
    if (offset) {
        add_parameter(&loop, OFFSET, offset);
    }
    npuq_loop_normalise(&loop, NPUQ_LOOP_ANY_ORDER);

    const npuq_row_kernels *kernels = npuq_kernels();
    const npuq_fp_state caller = npuq_fp_enter();
    for (size_t row = 0; row < npuq_loop_rows(&loop); row++) {
        npuq_rect rect;

        npuq_loop_rect(&loop, row, 1, 0, npuq_loop_cols(&loop), &rect);
        pack_row(kernels, &rect, round_mode);
    }
    npuq_fp_leave(&caller);
    return NPUQ_OK;
}
