/* SPDX-License-Identifier: BSD-3-Clause */
#include "dynamic.h"

#include "../element.h"
#include "../kernels/dispatch.h"
#include "../plan/fp_state.h"

/* Per token: rows whose ranges are found together, as many bytes of x as stay in a cache until they are read again;
 * from memory fewer, so that the next block is on its way while one is quantised; where smooth scales are converted
 * more, so that each run of them is converted once for all. Where x or y lies across, no fewer rows than use up the
 * cache lines of its columns, or two lines of x, as CPUs fetch them in pairs. */
enum {
    ROWS = NPUQ_SHORT_ROWS,
    BLOCK_BYTES = 32 * 1024,
    BLOCK_BYTES_FROM_MEMORY = 16 * 1024,
    BLOCK_BYTES_IN_L2 = 128 * 1024,
    ACROSS_BYTES = 128,
};
_Static_assert(ROWS % NPUQ_LANES == 0, "kernels write parameters in whole vectors");
enum { UNIT = 65536 };

/* What has one range: the units whose ranges are kept on the stack until all are known. Rows of LONG_ROW columns are
 * shared out to the caller's threads like a tensor, one after the other. */
enum { MAX_PARTS = 256, PART = 65536, LONG_ROW = 4 * PART };

/* Operands beside x and y. */
enum { LOOP_FIRST = 2, LOOP_SECOND = 3 };

typedef struct dynamic_walk {
    npuq_walk walk;
    npuq_dynamic_form form;
    bool is_empty; /* x, of which ranges are put even so */
    npuq_group_params smooth;
} dynamic_walk;

/* What has one range. No prepared call does. */
typedef struct one_range {
    dynamic_walk dynamic;
    npuq_range *parts; /* its units' */
    npuq_range range;
    float scale;
    float offset;
    float inverse_scale;
} one_range;

/* Of each row of a tile or block. */
typedef struct row_values {
    float hi[ROWS];
    float lo[ROWS];
    float scale[ROWS];
    float offset[ROWS];
    float inverse_scale[ROWS];
} row_values;

/* One value for each row, if there is such an operand. Not inlined: copies in all callers are kilobytes. */
static __attribute__((noinline)) void put_values(char *to, ptrdiff_t step, const float *values, size_t rows)
{
    for (size_t r = 0; r < rows && to; r++) {
        *(float *)(void *)(to + (ptrdiff_t)r * step) = npuq_canonical(values[r]);
    }
}

static void get_values(const char *from, ptrdiff_t step, float *values, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        values[r] = *(const float *)(const void *)(from + (ptrdiff_t)r * step);
    }
}

static void put(const npuq_tile *tile, const float *first, const float *second)
{
    put_values(tile->places[LOOP_FIRST].data, tile->places[LOOP_FIRST].row_stride, first, tile->rows);
    put_values(tile->places[LOOP_SECOND].data, tile->places[LOOP_SECOND].row_stride, second, tile->rows);
}

static npuq_params select_smooth(const npuq_walk *walk, const npuq_tile *tile)
{
    return npuq_select_params(&((const dynamic_walk *)walk)->smooth, tile->group, tile->col);
}

/* ---- passes ------------------------------------------------------------------------------------------------------ */

static void start_ranges(size_t rows, row_values *v)
{
    const npuq_range empty = npuq_empty_range();

    for (size_t r = 0; r < rows; r++) {
        v->hi[r] = empty.hi;
        v->lo[r] = empty.lo;
    }
}

/* Kernels compute the parameters of several rows in whole vectors. What these hold beyond the rows is made numbers
 * first: where a processor is slow with what lies there by chance, as with subnormal numbers, the call would be slow.
 */
static void find_parameters(const npuq_row_kernels *kernels, npuq_dynamic_form form, npuq_type y, size_t rows,
                            row_values *v)
{
    for (size_t r = rows; rows > 1 && r % NPUQ_LANES != 0; r++) {
        v->hi[r] = 1.0f;
        v->lo[r] = 0.0f;
    }
    kernels->parameters(form, y, v->hi, v->lo, rows, v->scale, v->offset, v->inverse_scale);
}

static void find_ranges(const npuq_kernel_choice *choice, const npuq_tile *tile, const npuq_params *smooth,
                        row_values *v)
{
    start_ranges(tile->rows, v);
    npuq_widen_ranges(choice, tile, smooth, v->hi, v->lo);
}

static void put_ranges_of_rows(const npuq_walk *walk, const npuq_tile *tile)
{
    const npuq_params smooth = select_smooth(walk, tile);
    row_values v;

    start_ranges(tile->rows, &v);
    if (!((const dynamic_walk *)walk)->is_empty) {
        npuq_widen_ranges(&walk->choice, tile, &smooth, v.hi, v.lo);
    }
    put(tile, v.lo, v.hi);
}

static void quantise_rows(const npuq_walk *walk, const npuq_tile *tile)
{
    const dynamic_walk *d = (const dynamic_walk *)walk;
    npuq_params smooth = select_smooth(walk, tile);
    row_values v;
    union {
        _Alignas(64) char x[NPUQ_STAGED]; /* gathered */
        struct {
            float x[NPUQ_SHORT * NPUQ_SHORT_ROWS]; /* gathered, of any type */
            float values[NPUQ_SHORT * NPUQ_SHORT_ROWS + NPUQ_LANES];
        } short_rows;
    } room;
    npuq_kernel_choice choice = walk->choice;
    npuq_tile from = *tile; /* x where it is, or what it has become */

    if (npuq_gather_x(&choice, &from, room.x)) {
        choice.memory = (npuq_memory_plan){0};
    }
    if (npuq_are_short_rows(&choice, &from)) {
        npuq_take_short_rows(&choice, &from, &smooth, room.short_rows.values, v.hi, v.lo);
        smooth.data = NULL;
    } else {
        find_ranges(&choice, &from, &smooth, &v);
    }
    find_parameters(choice.kernels, d->form, choice.y, tile->rows, &v);
    put(tile, v.scale, v.offset);
    npuq_requantise_tile(&choice, &from, &smooth, v.inverse_scale, v.offset, 1);
}

/* What y is made with, from scale and offset, or in the symmetric form from min and max, of so many rows. */
static void read_parameters(const npuq_row_kernels *kernels, npuq_dynamic_form form, npuq_type y, const char *first,
                            ptrdiff_t first_step, const char *second, ptrdiff_t second_step, size_t rows, row_values *v)
{
    if (form == NPUQ_ASYMMETRIC) {
        get_values(first, first_step, v->scale, rows);
        get_values(second, second_step, v->offset, rows);
        for (size_t r = 0; r < rows; r++) {
            v->inverse_scale[r] = 1.0f / v->scale[r];
        }
    } else {
        get_values(first, first_step, v->lo, rows);
        get_values(second, second_step, v->hi, rows);
        find_parameters(kernels, form, y, rows, v);
    }
}

static void requantise_rows(const npuq_walk *walk, const npuq_tile *tile)
{
    const dynamic_walk *d = (const dynamic_walk *)walk;
    const npuq_params smooth = select_smooth(walk, tile);
    row_values v;

    read_parameters(walk->choice.kernels, d->form, walk->choice.y, tile->places[LOOP_FIRST].data,
                    tile->places[LOOP_FIRST].row_stride, tile->places[LOOP_SECOND].data,
                    tile->places[LOOP_SECOND].row_stride, tile->rows, &v);
    npuq_requantise_tile(&walk->choice, tile, &smooth, v.inverse_scale, v.offset, 1);
}

static void find_range_of_part(const npuq_walk *walk, const npuq_tile *tile)
{
    const one_range *o = (const one_range *)walk;
    const npuq_params smooth = select_smooth(walk, tile);
    npuq_range *part = &o->parts[tile->unit];
    row_values v;

    find_ranges(&walk->choice, tile, &smooth, &v);
    for (size_t r = 0; r < tile->rows; r++) {
        *part = npuq_join_ranges(*part, (npuq_range){v.hi[r], v.lo[r]});
    }
}

static void requantise_part(const npuq_walk *walk, const npuq_tile *tile)
{
    const one_range *o = (const one_range *)walk;
    const npuq_params smooth = select_smooth(walk, tile);

    npuq_requantise_tile(&walk->choice, tile, &smooth, &o->inverse_scale, &o->offset, 0);
}

/* ---- what has one range ------------------------------------------------------------------------------------------ */

/* The one range of rows first_row on, to o->range; their units stay set. */
static void find_range(one_range *o, size_t first_row, size_t rows, const npuq_executor *executor)
{
    npuq_walk *walk = &o->dynamic.walk;
    npuq_range parts[MAX_PARTS];

    o->range = npuq_empty_range();
    walk->first_row = first_row;
    walk->block_rows = ROWS;
    size_t columns = npuq_limit_columns(&walk->space, PART);
    for (size_t part = PART;; part *= 2) { /* as large as it takes to have no more than MAX_PARTS */
        npuq_cut_units(&walk->task.units, rows, npuq_count_columns(&walk->space), part, columns);
        columns *= 2;
        if (walk->task.units.count <= MAX_PARTS) {
            break;
        }
    }
    for (size_t i = 0; i < walk->task.units.count; i++) {
        parts[i] = o->range;
    }
    o->parts = parts;
    walk->fn = find_range_of_part;
    npuq_run_task(&walk->task, executor);

    const npuq_fp_state caller = npuq_fp_enter();
    for (size_t i = 0; i < walk->task.units.count; i++) {
        o->range = npuq_join_ranges(o->range, parts[i]); /* empty where its unit was done with one before */
    }
    npuq_fp_leave(&caller);
}

/* Not inlined: what runs the executor would hold these values beside its own. */
static __attribute__((noinline)) void find_parameters_of_range(one_range *o)
{
    const npuq_walk *walk = &o->dynamic.walk;
    row_values v;

    v.hi[0] = o->range.hi;
    v.lo[0] = o->range.lo;
    find_parameters(walk->choice.kernels, o->dynamic.form, walk->choice.y, 1, &v);
    o->scale = v.scale[0];
    o->offset = v.offset[0];
    o->inverse_scale = v.inverse_scale[0];
}

/* A tensor, or one row after the other; the executor has the units of each. */
static void run_together(one_range *o, npuq_dynamic_step step, size_t together, const npuq_executor *executor)
{
    npuq_walk *walk = &o->dynamic.walk;
    const size_t all = npuq_count_rows(&walk->space);

    for (size_t row = 0; row < all; row += together) {
        npuq_tile tile;

        find_range(o, row, together, executor);
        npuq_select_tile(&walk->space, row, 1, 0, npuq_count_columns(&walk->space), &tile);

        const npuq_fp_state caller = npuq_fp_enter(); /* x87 may trap on a subnormal when it but copies it */
        if (step == NPUQ_FIND_RANGES) {
            put(&tile, &o->range.lo, &o->range.hi);
        } else {
            find_parameters_of_range(o);
            put(&tile, &o->scale, &o->offset);
        }
        npuq_fp_leave(&caller);
        if (step != NPUQ_FIND_RANGES) {
            walk->fn = requantise_part;
            npuq_run_task(&walk->task, executor);
        }
    }
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* Of x that is in a cache already. Halves are quantised slowly enough that they may come from the second-level cache
 * again: then more rows share what is computed once for a block. */
static size_t count_block_bytes(size_t x_size)
{
    return x_size < sizeof(float) ? BLOCK_BYTES_IN_L2 : BLOCK_BYTES;
}

/* All rows, each in one unit, as many together as stay in the cache. */
static void cut_whole_rows(dynamic_walk *d, const npuq_filling *filling)
{
    npuq_walk *walk = &d->walk;
    const size_t cols = npuq_count_columns(&walk->space);
    const size_t x_size = walk->choice.words[NPUQ_AT_X].size;
    const size_t block_bytes = npuq_is_unready(&d->smooth.first)       ? BLOCK_BYTES_IN_L2
                               : walk->choice.memory.reads.from_memory ? BLOCK_BYTES_FROM_MEMORY
                                                                       : count_block_bytes(x_size);
    const bool across = npuq_operand_lies_across(&walk->space, NPUQ_AT_X);
    const bool gathers = !npuq_operand_is_contiguous(&walk->space, NPUQ_AT_X);
    const size_t rows = npuq_count_rows(&walk->space);
    /* Columns that are all one element may be very many. One row needs no division. */
    size_t fitting = rows == 1 ? 1 : block_bytes / x_size / cols;
    const size_t gathered = gathers ? NPUQ_STAGED / x_size / cols : 0;
    size_t least = 1;

    if (gathered >= (across ? ACROSS_BYTES / 2 / x_size : 1)) { /* read once from where it is */
        fitting = gathered;
    } else if (across) {
        least = ACROSS_BYTES / x_size;
    }
    if (npuq_operand_lies_across(&walk->space, NPUQ_AT_Y)) {
        least = ROWS;
    }
    walk->block_rows = fitting < least ? least : fitting > ROWS ? ROWS : fitting;
    npuq_plan_second_pass(&walk->choice.memory, walk->block_rows, cols, x_size);

    const size_t elements = cols < UNIT / least ? UNIT : least * cols;

    npuq_cut_units(&walk->task.units, rows, cols, elements < filling->most ? elements : filling->most, cols);
}

/* ---- filling ----------------------------------------------------------------------------------------------------- */

static void add_parameter(dynamic_walk *d, npuq_filling *filling, int operand, int argument, bool per_tensor)
{
    const npuq_tensor *tensor = filling->arguments.tensors[argument];

    if (!tensor) {
        return;
    }
    if (per_tensor) {
        npuq_add_operand_along(&d->walk.space, operand, tensor, -1, 0);
    } else {
        npuq_add_operand(&d->walk.space, operand, tensor);
    }
    filling->pointers[argument] = (void *)&d->walk.space.data[operand];
}

/* ---- small dense calls ------------------------------------------------------------------------------------------- */

typedef struct dynamic_dense {
    npuq_dense dense;
    const npuq_row_kernels *kernels;
    npuq_type x;
    npuq_type y;
    npuq_dynamic_step step;
    npuq_dynamic_form form;
    npuq_group_params smooth;
    char *first;
    char *second; /* null where there is no offset */
} dynamic_dense;

static inline NPUQ_INLINED void run_block(const npuq_dense *dense, const npuq_block *block, size_t row, size_t col,
                                          size_t group)
{
    enum { STEP = sizeof(float) };
    const dynamic_dense *d = (const dynamic_dense *)dense;
    const npuq_row_kernels *kernels = d->kernels;
    char *const first = d->first + row * STEP;
    char *const second = d->second ? d->second + row * STEP : NULL;
    _Alignas(64) float smooths[NPUQ_DENSE_PARAMS + NPUQ_MAX_REPEAT];
    const float *smooth = NULL;
    row_values v;

    if (d->smooth.first.data) {
        const npuq_params params = npuq_select_params(&d->smooth, group, col);

        smooth = npuq_convert_params(kernels, &params, block->n, smooths);
    }
    if (d->step == NPUQ_APPLY) {
        read_parameters(kernels, d->form, d->y, first, STEP, second, STEP, block->rows, &v);
    } else {
        start_ranges(block->rows, &v);
        kernels->range[d->x](block, smooth, v.hi, v.lo);
    }
    if (d->step == NPUQ_FIND_RANGES) {
        put_values(first, STEP, v.lo, block->rows);
        put_values(second, STEP, v.hi, block->rows);
        return;
    }
    if (d->step == NPUQ_QUANTISE_ALL) {
        find_parameters(kernels, d->form, d->y, block->rows, &v);
        put_values(first, STEP, v.scale, block->rows);
        put_values(second, STEP, v.offset, block->rows);
    }
    if (smooth) {
        kernels->smooth_affine[d->y][d->x](block, smooth, v.inverse_scale, v.offset, 1);
    } else {
        kernels->affine_uniform[NPUQ_MUL][d->y][d->x](block, v.inverse_scale, v.offset, 1);
    }
}

static void run_dense(const npuq_task *task, size_t begin, size_t end)
{
    npuq_run_dense_units(task, begin, end, false, run_block);
}

/* Whether each row has one range, is long enough, and there is room to convert smooth scales. */
static bool suits_dense(const npuq_arguments *arguments, bool per_tensor, const npuq_executor *executor)
{
    const npuq_tensor *x = arguments->tensors[NPUQ_DYNAMIC_X];
    const npuq_tensor *smooth = arguments->tensors[NPUQ_DYNAMIC_SMOOTH];

    if (!npuq_are_small(arguments, NPUQ_DYNAMIC_X, executor)) {
        return false;
    }
    const int64_t cols = x->shape[x->ndim - 1];
    const bool one_row = arguments->counts[NPUQ_DYNAMIC_X] == cols;

    return (per_tensor && !smooth) || ((!per_tensor || one_row) && (one_row || cols >= NPUQ_SHORT) &&
                                       (!smooth || smooth->dtype == NPUQ_FLOAT32 || cols <= NPUQ_DENSE_PARAMS));
}

/* All but the task. */
static inline NPUQ_INLINED void fill_dense(dynamic_dense *d, const npuq_arguments *arguments, npuq_dynamic_step step,
                                           npuq_dynamic_form form, bool per_tensor)
{
    const npuq_tensor *const *tensors = arguments->tensors;
    const npuq_tensor *second = tensors[NPUQ_DYNAMIC_SECOND];

    npuq_list_rows(&d->dense, arguments, NPUQ_DYNAMIC_X, NPUQ_DYNAMIC_Y, NPUQ_DYNAMIC_X, per_tensor);
    const size_t row_bytes = (size_t)d->dense.block.x_stride;
    const size_t block_bytes = count_block_bytes(d->dense.x_word.size);

    d->dense.groups = npuq_list_groups(tensors[NPUQ_DYNAMIC_GROUP_INDEX]);
    d->dense.block_rows = step == NPUQ_APPLY || row_bytes <= block_bytes / ROWS ? ROWS
                          : row_bytes >= block_bytes                            ? 1
                                                                                : block_bytes / row_bytes;
    d->kernels = npuq_kernels();
    d->x = arguments->infos[NPUQ_DYNAMIC_X]->type;
    d->y = arguments->infos[NPUQ_DYNAMIC_Y]->type;
    d->step = step;
    d->form = form;
    d->smooth = npuq_list_group_params(arguments, NPUQ_DYNAMIC_SMOOTH);
    d->first = tensors[NPUQ_DYNAMIC_FIRST]->data;
    d->second = second ? second->data : NULL;
}

static void keep_dense(npuq_filling *filling, npuq_dynamic_step step, npuq_dynamic_form form, bool per_tensor)
{
    dynamic_dense d;

    _Static_assert(sizeof d <= NPUQ_TASK_BYTES, "a task fits a prepared call");
    fill_dense(&d, &filling->arguments, step, form, per_tensor);
    filling->pointers[NPUQ_DYNAMIC_SMOOTH] = (void *)&d.smooth.first.data;
    filling->pointers[NPUQ_DYNAMIC_FIRST] = (void *)&d.first;
    filling->pointers[NPUQ_DYNAMIC_SECOND] = (void *)&d.second;
    npuq_keep_dense(filling, &d.dense, sizeof d, run_dense, NPUQ_DYNAMIC_X, NPUQ_DYNAMIC_Y, step != NPUQ_APPLY);
}

/* Not inlined: the general way, which runs the caller's executor, would hold these buffers beside its own. */
static __attribute__((noinline)) void run_dense_now(const npuq_filling *filling, npuq_dynamic_step step,
                                                    npuq_dynamic_form form, bool per_tensor)
{
    dynamic_dense d;

    fill_dense(&d, &filling->arguments, step, form, per_tensor);
    npuq_run_dense_now(&d.dense, run_block);
}

/* ---- the general way --------------------------------------------------------------------------------------------- */

static void take_walk(npuq_filling *filling, npuq_dynamic_step step, npuq_dynamic_form form, bool per_tensor,
                      const npuq_executor *executor)
{
    const npuq_arguments *arguments = &filling->arguments;
    dynamic_walk t;
    npuq_space *space = &t.walk.space;
    const bool is_empty =
        !npuq_start_walk(&t.walk, filling, NPUQ_DYNAMIC_X, NPUQ_DYNAMIC_Y, NPUQ_DYNAMIC_X, 4, NPUQ_MUL,
                         step == NPUQ_APPLY         ? requantise_rows
                         : step == NPUQ_FIND_RANGES ? put_ranges_of_rows
                                                    : quantise_rows);

    _Static_assert(sizeof t <= NPUQ_TASK_BYTES, "a task fits a prepared call");
    if (!is_empty || (step == NPUQ_FIND_RANGES && npuq_count_elements(arguments->tensors[NPUQ_DYNAMIC_FIRST]) > 0)) {
        t.walk.groups = npuq_list_groups(arguments->tensors[NPUQ_DYNAMIC_GROUP_INDEX]);
        t.is_empty = is_empty;
        t.form = form;
        t.smooth = npuq_list_group_params(arguments, NPUQ_DYNAMIC_SMOOTH);
        filling->pointers[NPUQ_DYNAMIC_SMOOTH] = (void *)&t.smooth.first.data;
        add_parameter(&t, filling, LOOP_FIRST, NPUQ_DYNAMIC_FIRST, per_tensor);
        add_parameter(&t, filling, LOOP_SECOND, NPUQ_DYNAMIC_SECOND, per_tensor);
        for (int32_t i = 0; is_empty && i < space->ndim; i++) {
            if (space->extents[i] == 0 || per_tensor) { /* nothing to look at, but a range to put */
                space->extents[i] = 1;
            }
        }
        npuq_normalise_space(space, per_tensor && !t.smooth.first.data ? NPUQ_ANY_ORDER : NPUQ_KEEP_COLUMNS);

        if (step == NPUQ_APPLY || is_empty) {
            t.walk.block_rows = ROWS;
            npuq_cut_walk(&t.walk, filling, UNIT, UNIT);
        } else if (per_tensor || (executor && npuq_count_columns(space) >= LONG_ROW)) {
            assert(!filling->call);
            one_range o = {.dynamic = t};

            run_together(&o, step, per_tensor ? npuq_count_rows(space) : 1, executor);
            return;
        } else {
            cut_whole_rows(&t, filling);
        }
    }
    npuq_finish_filling(filling, &t.walk.task, sizeof t, executor);
}

void npuq_take_dynamic_step(npuq_filling *filling, npuq_dynamic_step step, npuq_dynamic_form form,
                            npuq_quant_mode quant_mode, const npuq_executor *executor)
{
    const bool per_tensor = quant_mode == NPUQ_PER_TENSOR;

    if (step == NPUQ_FIND_RANGES) { /* any type of y will do */
        filling->arguments.infos[NPUQ_DYNAMIC_Y] = npuq_find_type(NPUQ_INT8);
    }
    if (!suits_dense(&filling->arguments, per_tensor, executor)) {
        take_walk(filling, step, form, per_tensor, executor);
    } else if (filling->call) {
        keep_dense(filling, step, form, per_tensor);
    } else {
        run_dense_now(filling, step, form, per_tensor);
    }
}

/* ---- parameters alone -------------------------------------------------------------------------------------------- */

void npuq_find_params_of_ranges(npuq_dynamic_form form, npuq_type y, const npuq_space *space)
{
    const npuq_fp_state caller = npuq_fp_enter();

    for (size_t row = 0; row < npuq_count_rows(space); row++) {
        for (size_t col = 0; col < npuq_count_columns(space); col += ROWS) {
            const size_t left = npuq_count_columns(space) - col;
            npuq_tile tile;
            row_values v;

            npuq_select_tile(space, row, 1, col, left < ROWS ? left : ROWS, &tile);
            get_values(tile.places[NPUQ_PARAMS_MIN].data, tile.places[NPUQ_PARAMS_MIN].col_stride, v.lo, tile.cols);
            get_values(tile.places[NPUQ_PARAMS_MAX].data, tile.places[NPUQ_PARAMS_MAX].col_stride, v.hi, tile.cols);
            find_parameters(npuq_kernels(), form, y, tile.cols, &v);
            put_values(tile.places[NPUQ_PARAMS_SCALE].data, tile.places[NPUQ_PARAMS_SCALE].col_stride, v.scale,
                       tile.cols);
            put_values(tile.places[NPUQ_PARAMS_OFFSET].data, tile.places[NPUQ_PARAMS_OFFSET].col_stride, v.offset,
                       tile.cols);
        }
    }
    npuq_fp_leave(&caller);
}
