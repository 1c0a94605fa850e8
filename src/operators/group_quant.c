/* SPDX-License-Identifier: BSD-3-Clause */
#include "../view/groups.h"
#include "../view/view.h"
#include "../walk/dense.h"
#include "../walk/fp_state.h"
#include "../walk/tile.h"

static const char op[] = "group_quant";

/* Elements of a unit of work; where scales are converted, few columns, so that many rows share them. */
enum { UNIT = 32768, UNIT_COLUMNS = 4096 };

typedef struct group_quant_task {
    npuq_kernel_choice choice;
    npuq_loop loop;
    npuq_units units;
    const npuq_tensor *group_index;
    npuq_params scale; /* of group 0 */
    ptrdiff_t scale_group_step;
    npuq_params offset;
} group_quant_task;

static void group_quant_units(void *argument, size_t begin, size_t end)
{
    const group_quant_task *t = argument;
    const npuq_fp_state caller = npuq_fp_enter();

    for (size_t i = begin; i < end; i++) {
        const npuq_unit unit = npuq_unit_at(&t->units, i);

        for (size_t done = 0; done < unit.rows;) {
            const size_t row = unit.row + done;
            const npuq_group_run run = npuq_group_at(t->group_index, row, unit.rows - done);
            npuq_params scale = npuq_params_from(&t->scale, unit.col);
            npuq_rect rect;

            scale.data += (ptrdiff_t)run.e * t->scale_group_step;
            npuq_loop_rect(&t->loop, row, run.rows, unit.col, unit.cols, &rect);
            npuq_tile_affine_by_column(&t->choice, &rect, &scale, &t->offset);
            done += rect.rows;
        }
    }
    npuq_tile_end(&t->choice);
    npuq_fp_leave(&caller);
}

static npuq_status check_shapes(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *group_index,
                                const npuq_tensor *offset, const npuq_tensor *y)
{
    const int64_t scale_shape[] = {scale->shape[0], x->shape[1]};
    const int64_t one = 1;
    npuq_status status;

    if (scale->shape[0] < 1) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "scale", "dimension 0 is 0; expected one group or more");
    }
    if (offset && offset->dtype != scale->dtype) {
        return npuq_fail(NPUQ_ERROR_DTYPE, op, "offset", "dtype is %s; expected %s, the dtype of scale",
                         npuq_dtype_name(offset->dtype), npuq_dtype_name(scale->dtype));
    }
    if ((status = npuq_check_shape(op, "scale", scale, 2, scale_shape, "[E, H]")) != NPUQ_OK ||
        (status = npuq_check_shape(op, "group_index", group_index, 1, scale_shape, "[E]")) != NPUQ_OK ||
        (offset && (status = npuq_check_shape(op, "offset", offset, offset->ndim, &one, "one element")) != NPUQ_OK)) {
        return status;
    }
    return npuq_check_output_shape(op, x, y);
}

/* Whether a call is sure to pass all checks, see walk/dense.h. */
static bool passes_dense(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *group_index,
                         const npuq_tensor *offset, const npuq_tensor *y, const npuq_executor *executor)
{
    npuq_dense dense;

    if (!scale || !npuq_dense_rows(&dense, x, NPUQ_TAKES_FLOATS, y, NPUQ_TAKES_INT8 | NPUQ_TAKES_QUINT4X2, executor) ||
        x->ndim != 2) {
        return false;
    }
    const int64_t shape[] = {scale->shape[0], x->shape[1]};
    const int64_t one = 1;

    return npuq_dense_operand(&dense, scale, NPUQ_TAKES_FLOATS, 2, shape, false) &&
           npuq_dense_operand(&dense, group_index, NPUQ_TAKES_INDICES, 1, shape, false) &&
           (!offset ||
            (offset->dtype == scale->dtype && npuq_dense_operand(&dense, offset, NPUQ_TAKES_FLOATS, 1, &one, false)));
}

npuq_status npuq_group_quant(const npuq_tensor *x, const npuq_tensor *scale, const npuq_tensor *group_index,
                             const npuq_tensor *offset, const npuq_tensor *y, const npuq_executor *executor)
{
    const npuq_argument arguments[] = {
        {"x", x, NPUQ_TAKES_FLOATS, 2, 2, NPUQ_X},
        {"scale", scale, NPUQ_TAKES_FLOATS, 2, 2, NPUQ_INPUT},
        {"group_index", group_index, NPUQ_TAKES_INDICES, 1, 1, NPUQ_INPUT},
        {"offset", offset, NPUQ_TAKES_FLOATS, 0, 1, NPUQ_OPTIONAL_INPUT},
        {"y", y, NPUQ_TAKES_INT8 | NPUQ_TAKES_QUINT4X2, 2, 2, NPUQ_OUTPUT},
    };
    const size_t count = sizeof arguments / sizeof arguments[0];
    npuq_status status;

    if (!passes_dense(x, scale, group_index, offset, y, executor) &&
        ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK ||
         (status = check_shapes(x, scale, group_index, offset, y)) != NPUQ_OK ||
         (status = npuq_check_executor(op, executor)) != NPUQ_OK ||
         (status = npuq_check_layouts(op, arguments, count)) != NPUQ_OK)) {
        return status;
    }
    if ((status = npuq_check_group_index(op, group_index, x->shape[0])) != NPUQ_OK) {
        return status;
    }
    if (npuq_element_count(x) == 0) {
        return NPUQ_OK;
    }

    const ptrdiff_t size = (ptrdiff_t)npuq_dtype_size(scale->dtype);
    group_quant_task t;

    npuq_choose_kernels(&t.choice, x->dtype, y->dtype, NPUQ_MUL);
    t.group_index = group_index;
    t.scale = (npuq_params){.data = scale->data,
                            .dtype = scale->dtype,
                            .step = scale->shape[1] > 1 ? (ptrdiff_t)scale->strides[1] * size : size,
                            .repeat = 1};
    t.scale_group_step = scale->shape[0] > 1 ? (ptrdiff_t)scale->strides[0] * size : 0;
    t.offset = (npuq_params){.data = offset ? offset->data : NULL, .dtype = scale->dtype, .repeat = 1};
    npuq_loop_over(&t.loop, x, x->dtype, y->dtype);
    npuq_loop_operand(&t.loop, NPUQ_LOOP_X, x);
    npuq_loop_operand(&t.loop, NPUQ_LOOP_Y, y);
    npuq_loop_normalise(&t.loop, NPUQ_LOOP_KEEP_COLUMNS);
    if (npuq_exceeds_caches(&t.choice, (size_t)npuq_element_count(x))) {
        t.choice.ahead = NPUQ_AHEAD;
    }
    npuq_units_of(&t.units, npuq_loop_rows(&t.loop), npuq_loop_cols(&t.loop), UNIT,
                  npuq_loop_unit_columns(&t.loop, npuq_params_ready(&t.scale) ? UNIT : UNIT_COLUMNS));
    npuq_run(executor, t.units.count, group_quant_units, &t);
    return NPUQ_OK;
}
