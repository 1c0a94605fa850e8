/* SPDX-License-Identifier: BSD-3-Clause */
#include "from_integers.h"

#include "../view/view.h"
#include "../walk/fp_state.h"

#include <inttypes.h>

/* Elements of a unit of work. Where parameters are converted, it has few columns, so that many rows share them. */
enum { UNIT = 32768 };

enum { ROW_SCALE = 2 };

typedef struct from_integers_task {
    npuq_kernel_choice choice;
    npuq_loop loop;
    npuq_units units;
    const npuq_dequant_columns *columns;
} from_integers_task;

npuq_params npuq_column_params(const npuq_tensor *tensor)
{
    npuq_params params = {.repeat = 1};

    if (tensor) {
        const int last = tensor->ndim - 1;

        params.data = tensor->data;
        params.dtype = tensor->dtype;
        if (tensor->shape[last] > 1) {
            params.step = (ptrdiff_t)tensor->strides[last] * (ptrdiff_t)npuq_dtype_size(tensor->dtype);
        }
    }
    return params;
}

npuq_status npuq_check_columns(const char *op, const char *name, const npuq_tensor *tensor, int64_t columns)
{
    const int last = tensor->ndim - 1;

    if (tensor->shape[last] == 1 || tensor->shape[last] == columns) {
        return NPUQ_OK;
    }
    if (columns == 1) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, name, "dimension %d is %" PRId64 "; expected 1", last,
                         tensor->shape[last]);
    }
    return npuq_fail(NPUQ_ERROR_SHAPE, op, name,
                     "dimension %d is %" PRId64 "; expected 1 or %" PRId64 ", the elements of x's last dimension", last,
                     tensor->shape[last], columns);
}

static void run_units(void *argument, size_t begin, size_t end)
{
    const from_integers_task *t = argument;
    const npuq_fp_state caller = npuq_fp_enter();

    for (size_t i = begin; i < end; i++) {
        const npuq_unit unit = npuq_unit_at(&t->units, i);
        npuq_rect rect;

        for (size_t done = 0; done < unit.rows; done += rect.rows) {
            const size_t left = unit.rows - done;

            npuq_loop_rect(&t->loop, unit.row + done, left < NPUQ_DEQUANT_ROWS ? left : NPUQ_DEQUANT_ROWS, unit.col,
                           unit.cols, &rect);
            const npuq_params row_scale = {
                .data = rect.data[ROW_SCALE], .dtype = NPUQ_FLOAT32, .step = rect.row_step[ROW_SCALE], .repeat = 1};
            npuq_tile_dequant(&t->choice, &rect, t->columns, unit.col, &row_scale);
        }
    }
    npuq_tile_end(&t->choice);
    npuq_fp_leave(&caller);
}

/* Dense x and y as one rectangle, without an index space. */
static void run_dense(const npuq_kernel_choice *choice, const npuq_from_integers *a, bool elements_alike)
{
    const ptrdiff_t x_size = (ptrdiff_t)npuq_dtype_size(a->x->dtype);
    const ptrdiff_t y_size = (ptrdiff_t)npuq_dtype_size(a->y->dtype);
    const npuq_params row_scale = {
        .data = a->row_scale ? a->row_scale->data : NULL, .dtype = NPUQ_FLOAT32, .step = sizeof(float), .repeat = 1};
    const npuq_rect rect = {
        .rows = elements_alike ? 1 : a->dense->rows,
        .cols = elements_alike ? a->dense->rows * a->dense->cols : a->dense->cols,
        .data = {a->x->data, a->y->data},
        .row_step = {(ptrdiff_t)a->x->shape[a->x->ndim - 1] * x_size, (ptrdiff_t)a->y->shape[a->y->ndim - 1] * y_size},
        .col_step = {x_size, y_size}};
    const npuq_fp_state caller = npuq_fp_enter();

    npuq_tile_dequant(choice, &rect, &a->columns, 0, &row_scale);
    npuq_fp_leave(&caller);
}

void npuq_run_from_integers(const npuq_from_integers *arguments, const npuq_executor *executor)
{
    const npuq_dequant_columns *c = &arguments->columns;
    const bool elements_alike = !arguments->row_scale && !npuq_dequant_by_column(c) && !c->bias.data && !c->x_bias.data;
    from_integers_task t = {.columns = c};

    npuq_choose_kernels(&t.choice, arguments->x->dtype, arguments->y->dtype, NPUQ_MUL);
    if (arguments->dense) {
        run_dense(&t.choice, arguments, elements_alike);
        return;
    }
    npuq_loop_over(&t.loop, arguments->y, arguments->x->dtype, arguments->y->dtype);
    npuq_loop_operand(&t.loop, NPUQ_LOOP_X, arguments->x);
    npuq_loop_operand(&t.loop, NPUQ_LOOP_Y, arguments->y);
    if (arguments->row_scale) {
        npuq_loop_operand(&t.loop, ROW_SCALE, arguments->row_scale);
    }
    npuq_loop_normalise(&t.loop, elements_alike ? NPUQ_LOOP_ANY_ORDER : NPUQ_LOOP_KEEP_COLUMNS);
    if (npuq_exceeds_caches(&t.choice, (size_t)npuq_element_count(arguments->y))) {
        t.choice.ahead = NPUQ_AHEAD;
    }
    npuq_units_of(&t.units, npuq_loop_rows(&t.loop), npuq_loop_cols(&t.loop), UNIT,
                  npuq_loop_unit_columns(&t.loop, npuq_dequant_converts(c) ? NPUQ_DEQUANT_COLUMNS : UNIT));
    npuq_run(executor, t.units.count, run_units, &t);
}
