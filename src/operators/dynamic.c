/* SPDX-License-Identifier: BSD-3-Clause */
#include "dynamic.h"

#include "../view/groups.h"
#include "../view/view.h"
#include "../walk/fp_state.h"

/* Per token: rows whose ranges are found together, as many bytes of x as stay in the first cache until they are read
 * again; from memory fewer, so that the next block is on its way while one is quantised; where smooth scales are
 * converted more, so that each run of them is converted once for all. Where x or y lies across, no fewer rows than use
 * up the cache lines of its columns, or two lines of x, as CPUs fetch them in pairs. */
enum {
    ROWS = NPUQ_SHORT_ROWS,
    BLOCK_BYTES = 32 * 1024,
    BLOCK_BYTES_FROM_MEMORY = 16 * 1024,
    BLOCK_BYTES_CONVERTING = 128 * 1024,
    ACROSS_BYTES = 128,
};
enum { UNIT = 65536 };

/* Rows of at most so many bytes are still in a cache in their second pass, which brings the next rows there. Longer
 * ones come from memory in both passes. */
enum { AHEAD_ROW_BYTES = 256 * 1024 };

/* What has one range: the units whose ranges are kept on the stack until all are known. Rows of LONG_ROW columns are
 * shared out to the caller's threads like a tensor, one after the other. */
enum { MAX_PARTS = 256, PART = 65536, LONG_ROW = 4 * PART };

static float *of_row(const npuq_rect *rect, int operand, size_t r)
{
    return (float *)(void *)(rect->data[operand] + (ptrdiff_t)r * rect->row_step[operand]);
}

npuq_ref_parameters npuq_dynamic_parameters(npuq_dynamic_form form, npuq_ref_range range, npuq_ref_dtype y_dtype)
{
    const npuq_y_type y = y_dtype == NPUQ_REF_QUINT4X2 ? NPUQ_Y_I4 : NPUQ_Y_I8;
    npuq_ref_parameters p;

    npuq_rows_ref.parameters(form, y, &range.hi, &range.lo, 1, &p.scale, &p.offset, &p.back);
    return p;
}

/* One value for each row, if there is such an operand. Not inlined: copies in all callers are kilobytes. */
static __attribute__((noinline)) void put_values(char *to, ptrdiff_t step, const float *values, size_t rows)
{
    for (size_t r = 0; r < rows && to; r++) {
        *(float *)(void *)(to + (ptrdiff_t)r * step) = npuq_ref_canonical(values[r]);
    }
}

static void put(const npuq_rect *rect, int operand, const float *values)
{
    put_values(rect->data[operand], rect->row_step[operand], values, rect->rows);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static void start_ranges(size_t rows, float *hi, float *lo)
{
    const npuq_ref_range empty = npuq_ref_range_empty();

    for (size_t r = 0; r < rows; r++) {
        hi[r] = empty.hi;
        lo[r] = empty.lo;
    }
}

/* Kernels compute the parameters of several rows in whole vectors. What these hold beyond the rows is made numbers
 * first: where a processor is slow with what lies there by chance, as with subnormal numbers, the call would be slow.
 */
static void find_parameters(const npuq_row_kernels *kernels, npuq_dynamic_form form, npuq_y_type y, size_t rows,
                            float *hi, float *lo, float *scale, float *offset, float *back)
{
    for (size_t r = rows; rows > 1 && r % NPUQ_LANES != 0; r++) {
        hi[r] = 1.0f;
        lo[r] = 0.0f;
    }
    kernels->parameters(form, y, hi, lo, rows, scale, offset, back);
}

/* The range of each row of at most ROWS. */
static void find_ranges(const npuq_kernel_choice *choice, const npuq_rect *rect, const npuq_params *smooth, float *hi,
                        float *lo)
{
    start_ranges(rect->rows, hi, lo);
    npuq_tile_range(choice, rect, smooth, hi, lo);
}

static void ranges_of_rows(const npuq_dynamic *d, const npuq_rect *rect, const npuq_params *smooth, size_t i)
{
    float hi[ROWS];
    float lo[ROWS];

    (void)i;
    find_ranges(&d->choice, rect, smooth, hi, lo);
    put(rect, NPUQ_DYNAMIC_MAX, hi);
    put(rect, NPUQ_DYNAMIC_MIN, lo);
}

static void quantise_rows(const npuq_dynamic *d, const npuq_rect *rect, const npuq_params *smooth, size_t i)
{
    static const npuq_params none = {.data = NULL};
    float hi[ROWS];
    float lo[ROWS];
    float scale[ROWS];
    float offset[ROWS];
    float back[ROWS];
    union {
        _Alignas(64) char x[NPUQ_STAGED]; /* gathered */
        struct {
            float x[NPUQ_SHORT * NPUQ_SHORT_ROWS]; /* gathered, of any type */
            float values[NPUQ_SHORT * NPUQ_SHORT_ROWS + NPUQ_LANES];
        } short_rows;
    } room;
    npuq_kernel_choice choice = d->choice;
    npuq_rect from = *rect; /* x where it is, or what it has become */

    (void)i;
    if (npuq_tile_gather_x(&choice, &from, room.x)) {
        choice.ahead = 0; /* what follows in the buffer is not what comes next */
    }
    if (npuq_tile_are_short_rows(&choice, &from)) {
        npuq_tile_short_rows(&choice, &from, smooth, room.short_rows.values, hi, lo);
        smooth = &none;
    } else {
        find_ranges(&choice, &from, smooth, hi, lo);
    }
    find_parameters(choice.kernels, d->form, choice.y, rect->rows, hi, lo, scale, offset, back);
    put(rect, NPUQ_DYNAMIC_SCALE, scale);
    put(rect, NPUQ_DYNAMIC_OFFSET, offset);
    npuq_tile_requantise(&choice, &from, smooth, back, offset, 1);
}

static void requantise_rows(const npuq_dynamic *d, const npuq_rect *rect, const npuq_params *smooth, size_t i)
{
    float back[ROWS];
    float offset[ROWS];

    (void)i;
    for (size_t r = 0; r < rect->rows; r++) {
        if (d->form == NPUQ_ASYMMETRIC) {
            back[r] = npuq_ref_div(1.0f, *of_row(rect, NPUQ_DYNAMIC_SCALE, r));
            offset[r] = *of_row(rect, NPUQ_DYNAMIC_OFFSET, r);
        } else {
            const npuq_ref_range range = {*of_row(rect, NPUQ_DYNAMIC_MAX, r), *of_row(rect, NPUQ_DYNAMIC_MIN, r)};
            const npuq_ref_parameters p = npuq_dynamic_parameters(d->form, range, d->y_dtype);
            back[r] = p.back;
            offset[r] = p.offset;
        }
    }
    npuq_tile_requantise(&d->choice, rect, smooth, back, offset, 1);
}

static npuq_ref_range range_of_both(npuq_ref_range a, float hi, float lo)
{
    return npuq_ref_range_with(npuq_ref_range_with(a, hi), lo);
}

static void range_of_part(const npuq_dynamic *d, const npuq_rect *rect, const npuq_params *smooth, size_t i)
{
    float hi[ROWS];
    float lo[ROWS];

    find_ranges(&d->choice, rect, smooth, hi, lo);
    for (size_t r = 0; r < rect->rows; r++) {
        d->parts[i] = range_of_both(d->parts[i], hi[r], lo[r]);
    }
}

static void requantise_part(const npuq_dynamic *d, const npuq_rect *rect, const npuq_params *smooth, size_t i)
{
    (void)i;
    npuq_tile_requantise(&d->choice, rect, smooth, &d->parameters.back, &d->parameters.offset, 0);
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* How many of these rows are of the first one's group; smooth, which is of group 0, becomes that group's. */
static size_t rows_of_group(const npuq_tensor *group_index, ptrdiff_t group_step, size_t row, size_t rows,
                            npuq_params *smooth)
{
    if (!group_index) {
        return rows;
    }
    const npuq_group_run run = npuq_group_at(group_index, row, rows);

    smooth->data += (ptrdiff_t)run.e * group_step;
    return run.rows;
}

static void run_units(void *argument, size_t begin, size_t end)
{
    const npuq_dynamic *d = argument;
    const npuq_fp_state caller = npuq_fp_enter();

    for (size_t i = begin; i < end; i++) {
        const npuq_unit unit = npuq_unit_at(&d->units, i);
        npuq_rect rect;

        for (size_t done = 0; done < unit.rows; done += rect.rows) {
            const size_t row = d->first_row + unit.row + done;
            const size_t left = unit.rows - done;
            npuq_params smooth = d->smooth;
            const size_t rows = rows_of_group(d->group_index, d->smooth_group_step, row,
                                              left < d->block_rows ? left : d->block_rows, &smooth);

            if (unit.col > 0) {
                smooth = npuq_params_from(&smooth, unit.col);
            }
            npuq_loop_rect(&d->loop, row, rows, unit.col, unit.cols, &rect);
            d->pass(d, &rect, &smooth, i);
        }
    }
    npuq_tile_end(&d->choice);
    npuq_fp_leave(&caller);
}

static void run_pass(npuq_dynamic *d, npuq_dynamic_pass *pass, const npuq_executor *executor)
{
    d->pass = pass;
    npuq_run(executor, d->units.count, run_units, d);
}

/* All rows, each in one unit, as many together as stay in the cache. */
static void run_whole_rows(npuq_dynamic *d, npuq_dynamic_pass *pass, const npuq_executor *executor)
{
    const size_t cols = npuq_loop_cols(&d->loop);
    const size_t x_size = d->choice.x == NPUQ_X_F32 ? 4 : 2;
    const bool from_memory = d->choice.ahead > 0;
    const bool converts = d->smooth.data && !npuq_params_ready(&d->smooth);
    const size_t block_bytes = converts ? BLOCK_BYTES_CONVERTING : from_memory ? BLOCK_BYTES_FROM_MEMORY : BLOCK_BYTES;
    const bool across = npuq_loop_lies_across(&d->loop, NPUQ_LOOP_X);
    const bool gathers = !npuq_loop_is_contiguous(&d->loop, NPUQ_LOOP_X);
    const size_t rows = npuq_loop_rows(&d->loop);
    /* Columns that are all one element may be very many. One row needs no division. */
    size_t fitting = rows == 1 ? 1 : block_bytes / x_size / cols;
    const size_t gathered = gathers ? NPUQ_STAGED / x_size / cols : 0;
    size_t least = 1;

    if (gathered >= (across ? ACROSS_BYTES / 2 / x_size : 1)) { /* read once from where it is */
        fitting = gathered;
    } else if (across) {
        least = ACROSS_BYTES / x_size;
    }
    if (npuq_loop_lies_across(&d->loop, NPUQ_LOOP_Y)) {
        least = ROWS;
    }
    d->first_row = 0;
    d->block_rows = fitting < least ? least : fitting > ROWS ? ROWS : fitting;
    npuq_units_of(&d->units, rows, cols, cols < UNIT / least ? UNIT : least * cols, cols);
    if (from_memory && cols <= AHEAD_ROW_BYTES / x_size) {
        d->choice.ahead = d->block_rows * cols * x_size + NPUQ_AHEAD / 4;
    }
    run_pass(d, pass, executor);
}

/* The one range of rows first_row on, to d->range; their units stay set. */
static void find_range(npuq_dynamic *d, size_t first_row, size_t rows, const npuq_executor *executor)
{
    npuq_ref_range parts[MAX_PARTS];

    d->range = npuq_ref_range_empty();
    d->first_row = first_row;
    d->block_rows = ROWS;
    size_t columns = npuq_loop_unit_columns(&d->loop, PART);
    for (size_t part = PART;; part *= 2) { /* as large as it takes to have no more than MAX_PARTS */
        npuq_units_of(&d->units, rows, npuq_loop_cols(&d->loop), part, columns);
        columns *= 2;
        if (d->units.count <= MAX_PARTS) {
            break;
        }
    }
    for (size_t i = 0; i < d->units.count; i++) {
        parts[i] = d->range;
    }
    d->parts = parts;
    run_pass(d, range_of_part, executor);

    const npuq_fp_state caller = npuq_fp_enter();
    for (size_t i = 0; i < d->units.count; i++) {
        d->range = range_of_both(d->range, parts[i].hi, parts[i].lo);
    }
    npuq_fp_leave(&caller);
}

/* ---- a tensor, long rows shared out, or whole rows --------------------------------------------------------------- */

/* What is done with d->range, which rows first_row on have together. */
typedef void one_range_fn(npuq_dynamic *d, size_t first_row, const npuq_executor *executor);

static void put_range(npuq_dynamic *d, size_t first_row, const npuq_executor *executor)
{
    const npuq_fp_state caller = npuq_fp_enter(); /* x87 may trap on a subnormal when it but copies it */
    npuq_rect rect;

    (void)executor;
    npuq_loop_rect(&d->loop, first_row, 1, 0, 1, &rect);
    put(&rect, NPUQ_DYNAMIC_MAX, &d->range.hi);
    put(&rect, NPUQ_DYNAMIC_MIN, &d->range.lo);
    npuq_fp_leave(&caller);
}

static void quantise_together(npuq_dynamic *d, size_t first_row, const npuq_executor *executor)
{
    const npuq_fp_state caller = npuq_fp_enter();
    npuq_rect rect;

    d->parameters = npuq_dynamic_parameters(d->form, d->range, d->y_dtype);
    npuq_loop_rect(&d->loop, first_row, 1, 0, 1, &rect);
    put(&rect, NPUQ_DYNAMIC_SCALE, &d->parameters.scale);
    put(&rect, NPUQ_DYNAMIC_OFFSET, &d->parameters.offset);
    npuq_fp_leave(&caller);
    run_pass(d, requantise_part, executor);
}

/* Not inlined, for the same reason. */
static __attribute__((noinline)) void run(npuq_dynamic *d, one_range_fn *together, npuq_dynamic_pass *by_rows,
                                          const npuq_executor *executor)
{
    const size_t rows = npuq_loop_rows(&d->loop);

    if (d->per_tensor || (executor && npuq_loop_cols(&d->loop) >= LONG_ROW)) {
        const size_t with_one = d->per_tensor ? rows : 1;

        for (size_t row = 0; row < rows; row += with_one) {
            find_range(d, row, with_one, executor);
            together(d, row, executor);
        }
    } else {
        run_whole_rows(d, by_rows, executor);
    }
}

static void normalise(npuq_dynamic *d)
{
    npuq_loop_normalise(&d->loop, d->per_tensor && !d->smooth.data ? NPUQ_LOOP_ANY_ORDER : NPUQ_LOOP_KEEP_COLUMNS);
}

void npuq_dynamic_ranges(npuq_dynamic *d, const npuq_executor *executor)
{
    normalise(d);
    run(d, put_range, ranges_of_rows, executor);
}

void npuq_dynamic_quantise(npuq_dynamic *d, const npuq_executor *executor)
{
    normalise(d);
    run(d, quantise_together, quantise_rows, executor);
}

void npuq_dynamic_requantise(npuq_dynamic *d, const npuq_executor *executor)
{
    normalise(d);
    d->first_row = 0;
    d->block_rows = ROWS;
    npuq_units_of(&d->units, npuq_loop_rows(&d->loop), npuq_loop_cols(&d->loop), UNIT,
                  npuq_loop_unit_columns(&d->loop, UNIT));
    run_pass(d, requantise_rows, executor);
}

/* ---- setting up -------------------------------------------------------------------------------------------------- */

/* The smooth scales of group 0, if there are any, and the distance to the next group's. */
static npuq_params smooth_params(const npuq_tensor *s, ptrdiff_t *group_step)
{
    *group_step = 0;
    if (!s) {
        return (npuq_params){.data = NULL};
    }
    const ptrdiff_t size = (ptrdiff_t)npuq_dtype_size(s->dtype);
    const int last = s->ndim - 1;

    if (last == 1 && s->shape[0] > 1) {
        *group_step = (ptrdiff_t)s->strides[0] * size;
    }
    return (npuq_params){.data = s->data,
                         .dtype = s->dtype,
                         .step = s->shape[last] > 1 ? (ptrdiff_t)s->strides[last] * size : size,
                         .repeat = 1};
}

void npuq_dynamic_over(npuq_dynamic *d, npuq_dynamic_form form, const npuq_tensor *x, const npuq_tensor *smooth_scales,
                       const npuq_tensor *group_index, npuq_quant_mode quant_mode, const npuq_tensor *y)
{
    const npuq_dtype y_dtype = y ? y->dtype : NPUQ_INT8;

    npuq_choose_kernels(&d->choice, x->dtype, y_dtype, NPUQ_MUL);
    d->form = form;
    d->y_dtype = y_dtype == NPUQ_QUINT4X2 ? NPUQ_REF_QUINT4X2 : NPUQ_REF_INT8;
    d->per_tensor = quant_mode == NPUQ_PER_TENSOR;
    d->group_index = group_index;
    d->smooth = smooth_params(smooth_scales, &d->smooth_group_step);
    npuq_loop_over(&d->loop, x, x->dtype, y_dtype);
    npuq_loop_operand(&d->loop, NPUQ_LOOP_X, x);
    npuq_loop_operand(&d->loop, NPUQ_LOOP_Y, y ? y : x); /* which gives the order, if nothing else */
    if (npuq_exceeds_caches(&d->choice, (size_t)npuq_element_count(x))) {
        d->choice.ahead = NPUQ_AHEAD;
    }
}

void npuq_dynamic_operand(npuq_dynamic *d, int operand, const npuq_tensor *tensor)
{
    if (d->per_tensor) {
        npuq_loop_along(&d->loop, operand, tensor, -1, 0);
    } else {
        npuq_loop_operand(&d->loop, operand, tensor);
    }
}

/* ---- the short way ----------------------------------------------------------------------------------------------- */

bool npuq_dynamic_suits_dense(const npuq_dense *dense, const npuq_tensor *smooth_scales)
{
    return (dense->rows == 1 || dense->cols >= NPUQ_SHORT) &&
           (!smooth_scales || smooth_scales->dtype == NPUQ_FLOAT32 || dense->cols <= NPUQ_DENSE_PARAMS);
}

/* Not inlined, by the linker either: the general way would hold this buffer beside its own. */
__attribute__((noinline)) void npuq_dynamic_quantise_dense(npuq_dynamic_form form, const npuq_dense *dense,
                                                           const npuq_tensor *x, const npuq_tensor *smooth_scales,
                                                           const npuq_tensor *group_index, const npuq_tensor *y,
                                                           const npuq_tensor *scale, const npuq_tensor *offset)
{
    enum { STEP = sizeof(float) };
    const size_t rows = dense->rows;
    const size_t cols = dense->cols;
    _Alignas(64) float smooths[NPUQ_DENSE_PARAMS + NPUQ_MAX_REPEAT];
    float hi[ROWS];
    float lo[ROWS];
    float scales[ROWS];
    float offsets[ROWS];
    float back[ROWS];
    ptrdiff_t group_step;
    const npuq_params smooth_of_first = smooth_params(smooth_scales, &group_step);
    const size_t row_bytes = cols * npuq_dtype_size(x->dtype);
    const size_t most = rows == 1 || row_bytes >= BLOCK_BYTES ? 1
                        : row_bytes <= BLOCK_BYTES / ROWS     ? ROWS
                                                              : BLOCK_BYTES / row_bytes;
    npuq_kernel_choice choice;

    npuq_choose_kernels(&choice, x->dtype, y->dtype, NPUQ_MUL);
    npuq_block block = {
        .x = x->data,
        .y = y->data,
        .x_step = (ptrdiff_t)row_bytes,
        .y_step = (ptrdiff_t)(y->dtype == NPUQ_QUINT4X2 ? cols / 2 : cols),
        .n = cols,
    };
    const npuq_fp_state caller = npuq_fp_enter();

    for (size_t row = 0; row < rows; row += block.rows) {
        npuq_params params = smooth_of_first;
        const float *smooth = NULL;

        block.rows = rows_of_group(group_index, group_step, row, rows - row < most ? rows - row : most, &params);
        if (params.data) {
            smooth = npuq_params_f32(choice.kernels, &params, cols, smooths);
        }
        start_ranges(block.rows, hi, lo);
        choice.kernels->range[choice.x](&block, smooth, hi, lo);
        find_parameters(choice.kernels, form, choice.y, block.rows, hi, lo, scales, offsets, back);
        put_values((char *)scale->data + row * STEP, STEP, scales, block.rows);
        if (offset) {
            put_values((char *)offset->data + row * STEP, STEP, offsets, block.rows);
        }
        if (smooth) {
            choice.kernels->smooth_affine[choice.y][choice.x](&block, smooth, back, offsets, 1);
        } else {
            choice.kernels->affine_uniform[NPUQ_MUL][choice.y][choice.x](&block, back, offsets, 1);
        }
        block.x = (const char *)block.x + (ptrdiff_t)block.rows * block.x_step;
        block.y = (char *)block.y + (ptrdiff_t)block.rows * block.y_step;
    }
    npuq_fp_leave(&caller);
}
