/* SPDX-License-Identifier: BSD-3-Clause */
#include "fp_state.h"
#include "groups.h"
#include "tile.h"
#include "view.h"

#include "ref/npuq_ref_element.h"

#include <inttypes.h>

static const char op[] = "dynamic_quant_asymmetric";

enum { SCALE = 2, OFFSET = 3 };
enum { MAX_GROUPS = 1024 };

/* Per token: rows whose ranges are found together, as many bytes of x as stay in the first cache until they are read
 * again; from memory fewer, so that the next block is on its way while one is quantised; where smooth scales are
 * converted more, so that each run of them is converted once for all. */
enum { ROWS = 32, BLOCK_BYTES = 32 * 1024, BLOCK_BYTES_FROM_MEMORY = 16 * 1024, BLOCK_BYTES_CONVERTING = 128 * 1024 };
enum { UNIT = 65536 };

/* What has one range: the units whose ranges are kept on the stack until all are known. Rows of LONG_ROW columns are
 * shared out to the caller's threads like a tensor, one after the other. */
enum { MAX_PARTS = 256, PART = 65536, LONG_ROW = 4 * PART };

typedef struct dynamic_task {
    npuq_kernel_choice choice;
    npuq_ref_dtype y_dtype;
    npuq_loop loop;
    npuq_units units;
    const npuq_tensor *group_index; /* null: all rows take the smooth scales of group 0 */
    npuq_params smooth;             /* of group 0 */
    ptrdiff_t smooth_group_step;
    size_t block_rows;
    size_t first_row;               /* of what has one range */
    npuq_ref_range *parts;          /* its units' */
    npuq_ref_parameters parameters; /* its own */
} dynamic_task;

/* The range of each row of at most ROWS. */
static void find_ranges(const dynamic_task *t, const npuq_rect *rect, const npuq_params *smooth, float *hi, float *lo)
{
    const npuq_ref_range empty = npuq_ref_range_empty();

    for (size_t r = 0; r < rect->rows; r++) {
        hi[r] = empty.hi;
        lo[r] = empty.lo;
    }
    npuq_tile_range(&t->choice, rect, smooth, hi, lo);
}

/* ---- per token -------------------------------------------------------------------------------------------------- */

/* At most block_rows rows of one group. */
static void quantise_tokens(const dynamic_task *t, const npuq_rect *rect, const npuq_params *smooth)
{
    float hi[ROWS];
    float lo[ROWS];
    float back[ROWS];
    float offset[ROWS];

    find_ranges(t, rect, smooth, hi, lo);
    for (size_t r = 0; r < rect->rows; r++) {
        const npuq_ref_range range = {hi[r], lo[r]};
        const npuq_ref_parameters p = npuq_ref_range_parameters(range, t->y_dtype);

        *(float *)(void *)(rect->data[SCALE] + (ptrdiff_t)r * rect->row_step[SCALE]) = p.scale;
        *(float *)(void *)(rect->data[OFFSET] + (ptrdiff_t)r * rect->row_step[OFFSET]) = p.offset;
        back[r] = p.back;
        offset[r] = p.offset;
    }
    npuq_tile_requantise(&t->choice, rect, smooth, back, offset, 1);
}

static void token_units(void *argument, size_t begin, size_t end)
{
    const dynamic_task *t = argument;
    const npuq_fp_state caller = npuq_fp_enter();

    for (size_t i = begin; i < end; i++) {
        const npuq_unit unit = npuq_unit_at(&t->units, i);
        npuq_rect rect;

        for (size_t done = 0; done < unit.rows; done += rect.rows) {
            const size_t row = unit.row + done;
            const size_t left = unit.rows - done;
            npuq_group_run run = {0, left < t->block_rows ? left : t->block_rows};
            npuq_params smooth = t->smooth;

            if (t->group_index) {
                run = npuq_group_at(t->group_index, row, run.rows);
                smooth.data += (ptrdiff_t)run.e * t->smooth_group_step;
            }
            npuq_loop_rect(&t->loop, row, run.rows, 0, unit.cols, &rect);
            quantise_tokens(t, &rect, &smooth);
        }
    }
    npuq_fp_leave(&caller);
}

/* ---- one range for all: a tensor, or a long row ------------------------------------------------------------------ */

/* Calls part with each rectangle of unit i. */
static void for_rects(const dynamic_task *t, size_t i,
                      void (*part)(const dynamic_task *t, const npuq_rect *rect, const npuq_params *smooth, size_t i))
{
    const npuq_unit unit = npuq_unit_at(&t->units, i);
    const npuq_params smooth = npuq_params_from(&t->smooth, unit.col);
    npuq_rect rect;

    for (size_t done = 0; done < unit.rows; done += rect.rows) {
        const size_t left = unit.rows - done;
        npuq_loop_rect(&t->loop, t->first_row + unit.row + done, left < ROWS ? left : ROWS, unit.col, unit.cols, &rect);
        part(t, &rect, &smooth, i);
    }
}

static npuq_ref_range range_of_both(npuq_ref_range a, float hi, float lo)
{
    return npuq_ref_range_with(npuq_ref_range_with(a, hi), lo);
}

static void range_of_rect(const dynamic_task *t, const npuq_rect *rect, const npuq_params *smooth, size_t i)
{
    float hi[ROWS];
    float lo[ROWS];

    find_ranges(t, rect, smooth, hi, lo);
    for (size_t r = 0; r < rect->rows; r++) {
        t->parts[i] = range_of_both(t->parts[i], hi[r], lo[r]);
    }
}

static void requantise_rect(const dynamic_task *t, const npuq_rect *rect, const npuq_params *smooth, size_t i)
{
    (void)i;
    npuq_tile_requantise(&t->choice, rect, smooth, &t->parameters.back, &t->parameters.offset, 0);
}

static void range_units(void *argument, size_t begin, size_t end)
{
    const dynamic_task *t = argument;
    const npuq_fp_state caller = npuq_fp_enter();

    for (size_t i = begin; i < end; i++) {
        t->parts[i] = npuq_ref_range_empty();
        for_rects(t, i, range_of_rect);
    }
    npuq_fp_leave(&caller);
}

static void requantise_units(void *argument, size_t begin, size_t end)
{
    const dynamic_task *t = argument;
    const npuq_fp_state caller = npuq_fp_enter();

    for (size_t i = begin; i < end; i++) {
        for_rects(t, i, requantise_rect);
    }
    npuq_fp_leave(&caller);
}

/* Rows first_row on, in two passes; smooth scales are those of t. */
static void quantise_together(dynamic_task *t, size_t first_row, size_t rows, float *scale, float *offset,
                              const npuq_executor *executor)
{
    npuq_ref_range parts[MAX_PARTS];
    npuq_ref_range range = npuq_ref_range_empty();

    t->first_row = first_row;
    t->parts = parts;
    for (size_t part = PART;; part *= 2) { /* as large as it takes to have no more than MAX_PARTS */
        npuq_units_of(&t->units, rows, npuq_loop_cols(&t->loop), part, part);
        if (t->units.count <= MAX_PARTS) {
            break;
        }
    }
    npuq_run(executor, t->units.count, range_units, t);

    const npuq_fp_state caller = npuq_fp_enter();
    for (size_t i = 0; i < t->units.count; i++) {
        range = range_of_both(range, parts[i].hi, parts[i].lo);
    }
    t->parameters = npuq_ref_range_parameters(range, t->y_dtype);
    *scale = t->parameters.scale;
    *offset = t->parameters.offset;
    npuq_fp_leave(&caller);

    npuq_run(executor, t->units.count, requantise_units, t);
}

/* ---- per token, by rows or by parts of rows ---------------------------------------------------------------------- */

static void run_per_token(dynamic_task *t, size_t x_size, const npuq_executor *executor)
{
    const size_t rows = npuq_loop_rows(&t->loop);
    const size_t cols = npuq_loop_cols(&t->loop);
    const bool from_memory = t->choice.ahead > 0;
    const bool converts = t->smooth.data && !npuq_params_ready(&t->smooth);
    const size_t block_bytes = converts ? BLOCK_BYTES_CONVERTING : from_memory ? BLOCK_BYTES_FROM_MEMORY : BLOCK_BYTES;
    const size_t fitting = block_bytes / x_size / cols;

    t->block_rows = fitting < 1 ? 1 : fitting > ROWS ? ROWS : fitting;
    npuq_units_of(&t->units, rows, cols, UNIT, cols);
    if (from_memory) {
        t->choice.ahead = t->block_rows * cols * x_size + NPUQ_AHEAD;
    }
    npuq_run(executor, t->units.count, token_units, t);
}

/* Each row by itself, by all threads. */
static void run_long_rows(dynamic_task *t, const npuq_executor *executor)
{
    const npuq_params smooth = t->smooth;

    for (size_t row = 0; row < npuq_loop_rows(&t->loop); row++) {
        npuq_rect rect;

        if (t->group_index) {
            t->smooth = smooth;
            t->smooth.data += (ptrdiff_t)npuq_group_at(t->group_index, row, 1).e * t->smooth_group_step;
        }
        npuq_loop_rect(&t->loop, row, 1, 0, npuq_loop_cols(&t->loop), &rect);
        quantise_together(t, row, 1, (float *)(void *)rect.data[SCALE], (float *)(void *)rect.data[OFFSET], executor);
    }
}

/* ---- the operator ----------------------------------------------------------------------------------------------- */

static npuq_status check_smooth(const npuq_tensor *x, const npuq_tensor *smooth_scales, const npuq_tensor *group_index,
                                npuq_quant_mode quant_mode)
{
    const int64_t H = x->shape[x->ndim - 1];

    if (group_index && quant_mode == NPUQ_PER_TENSOR) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "group_index", "is given per tensor; expected null");
    }
    if (group_index && !smooth_scales) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "group_index", "is given without smooth_scales; expected null");
    }
    if (!smooth_scales) {
        return NPUQ_OK;
    }
    if (group_index && smooth_scales->ndim != 2) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "group_index",
                         "is given with 1-D smooth_scales; expected 2-D smooth_scales [E, H], or null");
    }
    if (!group_index && smooth_scales->ndim != 1) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "smooth_scales",
                         "has 2 dimensions and group_index is null; expected 1 dimension [H], or a group_index");
    }
    if (group_index) {
        const int64_t E = smooth_scales->shape[0];
        npuq_status status;

        if (E < 1 || E > MAX_GROUPS) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "smooth_scales", "dimension 0 is %" PRId64 "; expected 1 to %d", E,
                             MAX_GROUPS);
        }
        status = npuq_check_shape(op, "group_index", group_index, 1, &E, "[E]");
        if (status != NPUQ_OK) {
            return status;
        }
    }
    if (smooth_scales->shape[smooth_scales->ndim - 1] != H) {
        return npuq_fail(NPUQ_ERROR_SHAPE, op, "smooth_scales",
                         "dimension %d is %" PRId64 "; expected %" PRId64 ", the last dimension of x",
                         (int)smooth_scales->ndim - 1, smooth_scales->shape[smooth_scales->ndim - 1], H);
    }
    return NPUQ_OK;
}

static npuq_status check_parameter_shape(const char *name, const npuq_tensor *tensor, const npuq_tensor *x,
                                         npuq_quant_mode quant_mode)
{
    const int64_t one = 1;

    if (quant_mode == NPUQ_PER_TENSOR) {
        return npuq_check_shape(op, name, tensor, 1, &one, "one element per tensor");
    }
    return npuq_check_shape(op, name, tensor, x->ndim - 1, x->shape, "the shape of x without its last dimension");
}

/* Elements where they must be: per tensor any, per token in each row. */
static npuq_status check_emptiness(const npuq_tensor *x, npuq_quant_mode quant_mode)
{
    for (int d = 0; d < x->ndim; d++) {
        const bool last = d == x->ndim - 1;

        if (x->shape[d] == 0 && quant_mode == NPUQ_PER_TENSOR) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "x", "dimension %d is 0; expected 1 or more per tensor", d);
        }
        if (x->shape[d] == 0 && last) {
            return npuq_fail(NPUQ_ERROR_SHAPE, op, "x", "last dimension is 0; expected 1 or more");
        }
        if (x->shape[d] == 0) {
            return NPUQ_OK; /* no rows, whatever their length */
        }
    }
    return NPUQ_OK;
}

static int64_t row_count(const npuq_tensor *x)
{
    int64_t rows = 1;
    for (int d = 0; d < x->ndim - 1; d++) {
        rows *= x->shape[d];
    }
    return rows;
}

npuq_status npuq_dynamic_quant_asymmetric(const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                          const npuq_tensor *group_index, npuq_quant_mode quant_mode,
                                          const npuq_tensor *y, const npuq_tensor *scale, const npuq_tensor *offset,
                                          const npuq_executor *executor)
{
    const npuq_argument arguments[] = {
        {"x", x, NPUQ_TAKES_FLOATS, 2, NPUQ_MAX_NDIM, NPUQ_INPUT},
        {"smooth_scales", smooth_scales, NPUQ_TAKES_FLOATS, 1, 2, NPUQ_OPTIONAL_INPUT},
        {"group_index", group_index, NPUQ_TAKES_INDICES, 1, 1, NPUQ_OPTIONAL_INPUT},
        {"y", y, NPUQ_TAKES_INT8 | NPUQ_TAKES_QUINT4X2, 2, NPUQ_MAX_NDIM, NPUQ_OUTPUT},
        {"scale", scale, NPUQ_TAKES_FLOAT32, 1, NPUQ_MAX_NDIM - 1, NPUQ_OUTPUT},
        {"offset", offset, NPUQ_TAKES_FLOAT32, 1, NPUQ_MAX_NDIM - 1, NPUQ_OUTPUT},
    };
    const size_t count = sizeof arguments / sizeof arguments[0];
    npuq_status status;

    if ((status = npuq_check_arguments(op, arguments, count)) != NPUQ_OK) {
        return status;
    }
    if (quant_mode != NPUQ_PER_TOKEN && quant_mode != NPUQ_PER_TENSOR) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, op, "quant_mode", "is %d; expected 0 (per token) or 1 (per tensor)",
                         (int)quant_mode);
    }
    if ((status = check_emptiness(x, quant_mode)) != NPUQ_OK ||
        (status = check_smooth(x, smooth_scales, group_index, quant_mode)) != NPUQ_OK ||
        (status = npuq_check_output_shape(op, x, y)) != NPUQ_OK ||
        (status = check_parameter_shape("scale", scale, x, quant_mode)) != NPUQ_OK ||
        (status = check_parameter_shape("offset", offset, x, quant_mode)) != NPUQ_OK ||
        (status = npuq_check_executor(op, executor)) != NPUQ_OK ||
        (status = npuq_check_layouts(op, arguments, count)) != NPUQ_OK ||
        (group_index && (status = npuq_check_group_index(op, group_index, row_count(x))) != NPUQ_OK)) {
        return status;
    }
    if (npuq_element_count(x) == 0) {
        return NPUQ_OK;
    }

    dynamic_task t;

    npuq_choose_kernels(&t.choice, x->dtype, y->dtype, NPUQ_MUL);
    t.y_dtype = y->dtype == NPUQ_QUINT4X2 ? NPUQ_REF_QUINT4X2 : NPUQ_REF_INT8;
    t.group_index = group_index;
    t.smooth = (npuq_params){.data = NULL};
    t.smooth_group_step = 0;
    npuq_loop_over(&t.loop, x, y->dtype);
    if (smooth_scales) {
        const npuq_tensor *s = smooth_scales;
        const ptrdiff_t size = (ptrdiff_t)npuq_dtype_size(s->dtype);
        const int last = s->ndim - 1;

        t.smooth = (npuq_params){.data = s->data,
                                 .dtype = s->dtype,
                                 .step = s->shape[last] > 1 ? (ptrdiff_t)s->strides[last] * size : size,
                                 .repeat = 1};
        t.smooth_group_step = last == 1 && s->shape[0] > 1 ? (ptrdiff_t)s->strides[0] * size : 0;
    }
    npuq_loop_operand(&t.loop, NPUQ_LOOP_X, x);
    npuq_loop_operand(&t.loop, NPUQ_LOOP_Y, y);
    if (npuq_exceeds_caches(&t.choice, (size_t)npuq_element_count(x))) {
        t.choice.ahead = NPUQ_AHEAD;
    }
    if (quant_mode == NPUQ_PER_TENSOR) {
        npuq_loop_normalise(&t.loop, smooth_scales ? NPUQ_LOOP_KEEP_COLUMNS : NPUQ_LOOP_ANY_ORDER);
        quantise_together(&t, 0, npuq_loop_rows(&t.loop), scale->data, offset->data, executor);
        return NPUQ_OK;
    }
    npuq_loop_operand(&t.loop, SCALE, scale);
    npuq_loop_operand(&t.loop, OFFSET, offset);
    npuq_loop_normalise(&t.loop, NPUQ_LOOP_KEEP_COLUMNS);
    if (executor && npuq_loop_cols(&t.loop) >= LONG_ROW) {
        run_long_rows(&t, executor);
    } else {
        run_per_token(&t, npuq_dtype_size(x->dtype), executor);
    }
    return NPUQ_OK;
}
