/* SPDX-License-Identifier: BSD-3-Clause */
#include "dynamic.h"

#include "../element.h"
#include "affine.h"

enum { ROWS = NPUQ_RANGED_ROWS };
_Static_assert(ROWS % NPUQ_LANES == 0, "kernels write parameters in whole vectors");
_Static_assert(ROWS % NPUQ_SHORT_ROWS == 0, "ranges of short rows fill whole vectors, and their values too");

/* Rows of a group, on average: with fewer, kernels read float16 smooth scales where they lie. */
enum { CONVERTED_FROM = 4 };

enum {
    X = NPUQ_DYNAMIC_X,
    Y = NPUQ_DYNAMIC_Y,
    SMOOTH = NPUQ_DYNAMIC_SMOOTH,
    SCALE_OR_MIN = NPUQ_DYNAMIC_SCALE,
    OFFSET_OR_MAX = NPUQ_DYNAMIC_OFFSET
};

/* The one range of a tensor or a long row, and what is made of it. */
typedef struct npuq_one_range {
    npuq_range *parts; /* its units' */
    npuq_range range;
    float scale;
    float offset;
    float inverse_scale;
} one_range;

typedef struct row_values {
    float hi[ROWS];
    float lo[ROWS];
    float scale[ROWS];
    float offset[ROWS];
    float inverse_scale[ROWS];
} row_values;

/* Stores one value for each row. Not inlined: copies in all callers are kilobytes. */
static NPUQ_NOT_INLINED void store_values(char *to, ptrdiff_t stride, const float *values, size_t rows)
{
    if (stride == (ptrdiff_t)sizeof(float)) { /* compilers make vectors of this loop */
        for (size_t r = 0; r < rows; r++) {
            ((float *)(void *)to)[r] = npuq_canonical(values[r]);
        }
        return;
    }
    for (size_t r = 0; r < rows; r++) {
        *(float *)(void *)(to + (ptrdiff_t)r * stride) = npuq_canonical(values[r]);
    }
}

static void load_values(const char *from, ptrdiff_t stride, float *values, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        values[r] = *(const float *)(const void *)(from + (ptrdiff_t)r * stride);
    }
}

/* The second is absent in the symmetric form. */
static void store_for_rows(const npuq_tile *tile, const float *first, const float *second)
{
    const npuq_place *to = tile->places;

    store_values(to[SCALE_OR_MIN].data, to[SCALE_OR_MIN].row_stride, first, tile->rows);
    if (to[OFFSET_OR_MAX].data) {
        store_values(to[OFFSET_OR_MAX].data, to[OFFSET_OR_MAX].row_stride, second, tile->rows);
    }
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

/* Kernels compute the parameters of several rows in whole vectors. The lanes beyond the rows are set first: chance
 * contents, such as subnormal numbers, are slow on some processors. */
static void compute_parameters(const npuq_row_kernels *kernels, npuq_dynamic_form form, npuq_type y, size_t rows,
                               row_values *v)
{
    for (size_t r = rows; rows > 1 && r % NPUQ_LANES != 0; r++) {
        v->hi[r] = 1.0f;
        v->lo[r] = 0.0f;
    }
    kernels->parameters(form, y, v->hi, v->lo, rows, v->scale, v->offset, v->inverse_scale);
}

/* Most calls have nothing to convert. Asked before, this takes one branch in place of six tests. */
static inline NPUQ_INLINED bool is_half_smooth(const npuq_kernel_setup *setup, const npuq_params *smooth)
{
    return npuq_needs_conversion(smooth) && npuq_are_half_columns(setup, smooth);
}

static inline NPUQ_INLINED void find_ranges(const npuq_kernel_setup *setup, const npuq_tile *tile,
                                            const npuq_params *smooth, row_values *v)
{
    npuq_rows_fn *kernel = npuq_range_kernel(setup->kernels, setup->types[X]);
    const bool half_columns = is_half_smooth(setup, smooth);

    start_ranges(tile->rows, v);
    if (npuq_is_in_place(setup, tile, X) && npuq_is_ready_smooth(setup, smooth)) {
        const npuq_range_params params = {smooth->data, tile->group_offsets, v->hi, v->lo, half_columns};
        const npuq_block block = npuq_make_block(setup, tile, false);

        kernel(&block, &params);
    } else {
        npuq_range_params params = {NULL, tile->group_offsets, v->hi, v->lo, half_columns};

        npuq_run_smooth_pass(setup, tile, kernel, &params, &params.smooth, *smooth, false);
    }
}

/* The symmetric forms have no offset. */
static inline const float *find_offset(const npuq_plan *plan, const float *offset)
{
    return npuq_get_dynamic(plan)->form == NPUQ_ASYMMETRIC ? offset : NULL;
}

/* y = sat(round((x * smooth) * inverse_scale + offset)), smooth by column. Smooth scales and offset may be absent. */
static inline NPUQ_INLINED void requantise(const npuq_kernel_setup *setup, const npuq_tile *tile,
                                           const npuq_params *smooth, const float *inverse_scale, const float *offset,
                                           npuq_steps steps)
{
    npuq_quant_params params = {
        inverse_scale,   offset, smooth->data, tile->group_offsets, steps, 0, is_half_smooth(setup, smooth),
        setup->rounding, false};

    if (npuq_is_block(setup, tile) && npuq_is_ready_smooth(setup, smooth)) {
        const npuq_block block = npuq_make_block(setup, tile, true);

        npuq_find_quantiser(setup)(&block, &params);
    } else if (!smooth->data) {
        npuq_quantise_strided_rows(setup, tile, &params);
    } else {
        npuq_run_smooth_pass(setup, tile, npuq_find_quantiser(setup), &params, &params.smooth, *smooth, true);
    }
}

void npuq_store_ranges(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_params smooth = npuq_make_params(&plan->setup, tile, SMOOTH);
    row_values v;

    if (npuq_get_dynamic(plan)->is_empty) {
        start_ranges(tile->rows, &v);
    } else {
        find_ranges(&plan->setup, tile, &smooth, &v);
    }
    store_for_rows(tile, v.lo, v.hi);
}

/* ---- all steps together ------------------------------------------------------------------------------------------ */

static bool are_short_rows(const npuq_tile *tile)
{
    return tile->rows > 1 && tile->cols < NPUQ_SHORT;
}

/* Stores x times smooth as binary32 in values, which has room for NPUQ_SHORT * ROWS + NPUQ_LANES, and the
 * ranges in hi and lo. Setup and tile then describe values as x. Not inlined: the caller would keep this buffer during
 * later calls. */
static NPUQ_NOT_INLINED void take_short_rows(npuq_kernel_setup *setup, npuq_tile *tile, const npuq_params *smooth,
                                             float *values, float *hi, float *lo)
{
    enum { LINE = 64 };
    float smooths[NPUQ_SHORT * NPUQ_SHORT_ROWS + NPUQ_MAX_REPEAT];
    const size_t n = tile->cols;
    const npuq_params x = {tile->places[X].data, setup->words[X].size, setup->types[X], 1, 0};
    const size_t bytes = npuq_count_bytes(setup->words[X], n * tile->rows);
    const float *all = NULL;

    assert(tile->rows <= ROWS);
    /* The processor does not prefetch these few lines: too much work lies between them and the next lines. */
    for (size_t line = 0; setup->memory.reads.from_memory && line < bytes; line += LINE) {
        __builtin_prefetch(x.data + 2 * bytes + line);
    }
    const float *widened = npuq_convert_params(setup->kernels, &x, n * tile->rows, values);

    if (widened != values) {
        memcpy(values, widened, n * tile->rows * sizeof *values);
    }
    if (smooth->data) {
        all = npuq_convert_repeated(setup->kernels, smooth, n, npuq_smaller(tile->rows, NPUQ_SHORT_ROWS), smooths);
    }
    for (size_t row = 0; row < tile->rows; row += NPUQ_SHORT_ROWS) {
        setup->kernels->short_rows(values + row * n, all, n, npuq_smaller(tile->rows - row, NPUQ_SHORT_ROWS), hi + row,
                                   lo + row);
    }
    setup->types[X] = NPUQ_TYPE_FLOAT32;
    setup->words[X] = npuq_word_of(NPUQ_TYPE_FLOAT32);
    setup->memory = (npuq_memory_plan){0};
    tile->places[X] = npuq_describe_staged((char *)values, setup->words[X], n);
}

/* Raises the inverse scale to at least min_scale, and lowers the scale to at most 1 / min_scale. NaN stays NaN. */
static void limit_parameters(float min_scale, size_t rows, row_values *v)
{
    const float most = 1.0f / min_scale;

    for (size_t r = 0; r < rows; r++) {
        v->inverse_scale[r] = v->inverse_scale[r] < min_scale ? min_scale : v->inverse_scale[r];
        v->scale[r] = v->scale[r] > most ? most : v->scale[r];
    }
}

/* As the Ascend 950 divides: subnormal operands are zeros, and so is a quotient below 2^-126. a and b have no sign. */
static float divide_flushed(float a, float b)
{
    const float dividend = a < 0x1p-126f ? 0.0f : a;
    const float divisor = b < 0x1p-126f ? 0.0f : b;

    return dividend * 0x1p126f < divisor ? 0.0f : dividend / divisor;
}

/* The largest magnitude of a range. NaN stays NaN. */
static inline float find_largest(const row_values *v, size_t r)
{
    const uint32_t hi = npuq_bits_of_float(v->hi[r]) & 0x7FFFFFFF;
    const uint32_t lo = npuq_bits_of_float(v->lo[r]) & 0x7FFFFFFF;

    return npuq_float_of_bits(hi > lo ? hi : lo);
}

/* Small floats are divided by the scale, in place of a product with the inverse. That of a block is a quotient, and at
 * most 1 / min_scale if it is finite. */
static NPUQ_NOT_INLINED void compute_divisors(const npuq_dynamic_own *own, size_t rows, row_values *v)
{
    const float dmax = npuq_float_of_bits(own->dmax);
    const float one_in_dmax = 1.0f / dmax;
    const bool of_block = own->form == NPUQ_SYMMETRIC_BLOCK_DIVISOR;
    const float infinite = npuq_float_of_bits(0x7F800000);
    const float most = of_block ? divide_flushed(1.0f, npuq_float_of_bits(own->min_scale & 0x7FFFFFFF)) : infinite;

    for (size_t r = 0; r < rows; r++) {
        const float largest = find_largest(v, r);
        const float scale = of_block ? divide_flushed(largest, dmax) : largest * one_in_dmax;

        v->scale[r] = scale > most && scale < infinite ? most : scale;
        v->inverse_scale[r] = v->scale[r];
    }
}

/* Small floats in groups are multiplied by the power of two that an inverse scale is here. Stores scale codes: of
 * groups of one row in their pairs, or of the same group of several rows. Makes inverse scales of the largest
 * magnitudes. */
static NPUQ_NOT_INLINED const uint16_t *set_factors(const npuq_plan *plan, const npuq_tile *tile, float *factors,
                                                    uint16_t *shifts)
{
    uint16_t unused[ROWS];
    uint8_t codes[ROWS];
    const npuq_place *to = &tile->places[SCALE_OR_MIN];
    const size_t of_pair = to->col_stride != 0 ? 2 : 1;

    const uint16_t *given =
        npuq_find_mx_scales(&npuq_get_dynamic(plan)->mx, factors, tile->rows, codes, shifts ? shifts : unused);

    for (size_t i = 0; i < npuq_smaller(of_pair, tile->rows); i++) {
        npuq_copy_row(to->data + (ptrdiff_t)i * to->col_stride, to->row_stride, (const char *)codes + i,
                      (ptrdiff_t)of_pair, sizeof *codes, (tile->rows + of_pair - 1 - i) / of_pair);
    }
    return given;
}

static inline NPUQ_INLINED void compute_parameters_of(const npuq_plan *plan, size_t rows, row_values *v)
{
    const npuq_dynamic_own *own = npuq_get_dynamic(plan);

    if (own->form >= NPUQ_SYMMETRIC_DIVISOR) {
        compute_divisors(own, rows, v);
    } else {
        compute_parameters(plan->setup.kernels, own->form, plan->setup.types[Y], rows, v);
    }
}

/* Makes parameters of ranges, and stores scales and offsets. */
static inline NPUQ_INLINED void set_parameters(const npuq_plan *plan, const npuq_tile *tile, row_values *v)
{
    if (npuq_get_dynamic(plan)->form == NPUQ_SYMMETRIC_GROUP) {
        for (size_t r = 0; r < tile->rows; r++) {
            v->inverse_scale[r] = find_largest(v, r);
        }
        (void)set_factors(plan, tile, v->inverse_scale, NULL);
        return;
    }
    compute_parameters_of(plan, tile->rows, v);
    if (npuq_get_dynamic(plan)->form == NPUQ_SYMMETRIC_BLOCK) {
        const float min_scale = npuq_float_of_bits(npuq_get_dynamic(plan)->min_scale);

        if (min_scale > 0.0f) {
            limit_parameters(min_scale, tile->rows, v);
        }
    }
    store_for_rows(tile, v->scale, v->offset);
}

/* Not inlined, these two: other rows have no use for their buffers. */
static NPUQ_NOT_INLINED void quantise_short_rows(const npuq_plan *plan, const npuq_tile *tile)
{
    uint16_t halves[NPUQ_SHORT * ROWS]; /* gathered; floats are values */
    _Alignas(64) float values[NPUQ_SHORT * ROWS + NPUQ_LANES];
    const npuq_params smooth = npuq_make_params(&plan->setup, tile, SMOOTH);
    const npuq_params none = {NULL, 0, NPUQ_TYPE_FLOAT32, 1, 0};
    npuq_kernel_setup setup = plan->setup;
    npuq_tile from = *tile;
    row_values v;

    (void)npuq_gather_x(&setup, &from, setup.types[X] == NPUQ_TYPE_FLOAT32 ? (char *)values : (char *)halves);
    take_short_rows(&setup, &from, &smooth, values, v.hi, v.lo);
    set_parameters(plan, &from, &v);
    requantise(&setup, &from, &none, v.inverse_scale, find_offset(plan, v.offset), NPUQ_BY_ROW);
}

static NPUQ_NOT_INLINED void quantise_gathered_rows(const npuq_plan *plan, const npuq_tile *tile)
{
    _Alignas(64) char x[NPUQ_STAGED];
    const npuq_params smooth = npuq_make_params(&plan->setup, tile, SMOOTH);
    npuq_kernel_setup setup = plan->setup;
    npuq_tile from = *tile;
    row_values v;

    if (npuq_gather_x(&setup, &from, x)) {
        setup.memory = (npuq_memory_plan){0};
    }
    find_ranges(&setup, &from, &smooth, &v);
    set_parameters(plan, &from, &v);
    requantise(&setup, &from, &smooth, v.inverse_scale, find_offset(plan, v.offset), NPUQ_BY_ROW);
}

/* Whether kernels can take the rows as runs of one row: the rows are dense, and their largest magnitudes are enough.
 * One by one, many rows of few columns take up to eight times as long. */
static bool are_runs(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_kernel_setup *setup = &plan->setup;
    const npuq_place *places = tile->places;
    const size_t n = tile->cols;

    return tile->rows > 1 && n % NPUQ_LEAST_RUN == 0 && n <= NPUQ_LONGEST_RUN &&
           npuq_get_dynamic(plan)->form != NPUQ_ASYMMETRIC && !places[SMOOTH].data &&
           places[X].col_stride == (ptrdiff_t)setup->words[X].size &&
           places[X].row_stride == (ptrdiff_t)npuq_count_bytes(setup->words[X], n) &&
           places[Y].col_stride == (ptrdiff_t)setup->words[Y].size &&
           places[Y].row_stride == (ptrdiff_t)npuq_count_bytes(setup->words[Y], n);
}

static NPUQ_NOT_INLINED void quantise_runs(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_kernel_setup *setup = &plan->setup;
    const unsigned run = (unsigned)tile->cols;
    npuq_block all = {tile->places[X].data, tile->places[Y].data, 0, 0, 1, tile->rows * tile->cols, 0,
                      setup->memory.reads,  setup->flip};
    row_values v;
    uint16_t shifts[ROWS];
    npuq_quant_params params = {v.inverse_scale, NULL, NULL, NULL, NPUQ_BY_RUN, run, false, setup->rounding, false};

    if (npuq_get_dynamic(plan)->form == NPUQ_SYMMETRIC_GROUP) {
        npuq_run_kernel(setup->kernels, setup->types[X])(&all, run, v.inverse_scale);
        const uint16_t *given = set_factors(plan, tile, v.inverse_scale, shifts);

        params.smooth = run % NPUQ_LEAST_SHIFTED == 0 ? given : NULL;
        params.has_shifts = params.smooth != NULL;
    } else {
        npuq_run_kernel(setup->kernels, setup->types[X])(&all, run, v.hi);
        memcpy(v.lo, v.hi, sizeof v.lo);
        set_parameters(plan, tile, &v);
    }
    all.hints = setup->memory.writes;
    npuq_find_quantiser(setup)(&all, &params);
}

void npuq_quantise_by_ranges(const npuq_plan *plan, const npuq_tile *tile)
{
    if (are_runs(plan, tile)) {
        quantise_runs(plan, tile);
        return;
    }
    if (are_short_rows(tile) && plan->setup.rounding != NPUQ_SMALL_FLOOR) { /* which depends on the type of x */
        quantise_short_rows(plan, tile);
        return;
    }
    if (!npuq_is_in_place(&plan->setup, tile, X)) {
        quantise_gathered_rows(plan, tile);
        return;
    }
    const npuq_params smooth = npuq_make_params(&plan->setup, tile, SMOOTH);
    row_values v;

    find_ranges(&plan->setup, tile, &smooth, &v);
    set_parameters(plan, tile, &v);
    requantise(&plan->setup, tile, &smooth, v.inverse_scale, find_offset(plan, v.offset), NPUQ_BY_ROW);
}

/* Stores the scale, and returns what x is divided by. Not inlined: the caller would keep these values. */
static NPUQ_NOT_INLINED float find_one_scale(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_params none = {NULL, 0, NPUQ_TYPE_FLOAT32, 1, 0};
    npuq_range range = npuq_empty_range();
    npuq_tile part = *tile;
    row_values v;

    for (size_t row = 0; row < tile->rows; row += part.rows) {
        part.rows = npuq_smaller(tile->rows - row, ROWS);
        find_ranges(&plan->setup, &part, &none, &v);
        for (size_t r = 0; r < part.rows; r++) {
            range = npuq_join_ranges(range, (npuq_range){v.hi[r], v.lo[r]});
        }
        part.places[X].data += (ptrdiff_t)part.rows * part.places[X].row_stride;
    }
    v.hi[0] = range.hi;
    v.lo[0] = range.lo;
    part.rows = 1;
    set_parameters(plan, &part, &v);
    return v.inverse_scale[0];
}

void npuq_quantise_by_one_range(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_params none = {NULL, 0, NPUQ_TYPE_FLOAT32, 1, 0};
    const float scale = find_one_scale(plan, tile);

    requantise(&plan->setup, tile, &none, &scale, NULL, NPUQ_ONE);
}

/* ---- the last step ----------------------------------------------------------------------------------------------- */

/* Reads scale and offset, or min and max in the symmetric form. */
static void read_parameters(const npuq_plan *plan, const npuq_tile *tile, row_values *v)
{
    const npuq_place *first = &tile->places[SCALE_OR_MIN];
    const npuq_place *second = &tile->places[OFFSET_OR_MAX];

    if (npuq_get_dynamic(plan)->form == NPUQ_ASYMMETRIC) {
        load_values(first->data, first->row_stride, v->scale, tile->rows);
        load_values(second->data, second->row_stride, v->offset, tile->rows);
        for (size_t r = 0; r < tile->rows; r++) {
            v->inverse_scale[r] = 1.0f / v->scale[r];
        }
    } else {
        load_values(first->data, first->row_stride, v->lo, tile->rows);
        load_values(second->data, second->row_stride, v->hi, tile->rows);
        compute_parameters_of(plan, tile->rows, v);
    }
}

void npuq_quantise_by_parameters(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_params smooth = npuq_make_params(&plan->setup, tile, SMOOTH);
    row_values v;
    const float *offset = find_offset(plan, v.offset);

    read_parameters(plan, tile, &v);
    requantise(&plan->setup, tile, &smooth, v.inverse_scale, offset, NPUQ_BY_ROW);
}

/* ---- what has one range ------------------------------------------------------------------------------------------ */

static void find_range_of_part(const npuq_plan *plan, const npuq_tile *tile)
{
    const npuq_params smooth = npuq_make_params(&plan->setup, tile, SMOOTH);
    npuq_range *part = &npuq_get_dynamic(plan)->one->parts[tile->unit];
    row_values v;

    find_ranges(&plan->setup, tile, &smooth, &v);
    for (size_t r = 0; r < tile->rows; r++) {
        *part = npuq_join_ranges(*part, (npuq_range){v.hi[r], v.lo[r]});
    }
}

static void requantise_part(const npuq_plan *plan, const npuq_tile *tile)
{
    const one_range *o = npuq_get_dynamic(plan)->one;
    const npuq_params smooth = npuq_make_params(&plan->setup, tile, SMOOTH);

    requantise(&plan->setup, tile, &smooth, &o->inverse_scale, find_offset(plan, &o->offset), NPUQ_ONE);
}

/* Finds the one range of these rows. Their units stay set. */
static void find_range(npuq_plan *plan, size_t first_row, size_t rows, const npuq_executor *executor)
{
    one_range *o = npuq_get_dynamic(plan)->one;
    npuq_range parts[NPUQ_MOST_PARTS];
    size_t columns = plan->way != NPUQ_IN_SPACE ? NPUQ_PART : npuq_limit_columns(&plan->area.space, NPUQ_PART);

    o->range = npuq_empty_range();
    plan->first_row = first_row;
    plan->block_rows = ROWS;
    for (size_t part = NPUQ_PART;; part *= 2) { /* as large as it takes to have no more than NPUQ_MOST_PARTS */
        npuq_cut_units(&plan->units, rows, npuq_count_plan_columns(plan), part, columns);
        columns *= 2;
        if (plan->units.count <= NPUQ_MOST_PARTS) {
            break;
        }
    }
    for (size_t i = 0; i < plan->units.count; i++) {
        parts[i] = o->range;
    }
    o->parts = parts;
    plan->compute = find_range_of_part;
    npuq_run_plan(plan, executor);

    const npuq_fp_state caller = npuq_fp_enter();
    for (size_t i = 0; i < plan->units.count; i++) {
        o->range = npuq_join_ranges(o->range, parts[i]); /* empty where its unit was joined to one before */
    }
    npuq_fp_leave(&caller);
}

/* Not inlined: the caller would keep these values while the executor runs. */
static NPUQ_NOT_INLINED void compute_parameters_of_range(const npuq_plan *plan)
{
    one_range *o = npuq_get_dynamic(plan)->one;
    row_values v;

    v.hi[0] = o->range.hi;
    v.lo[0] = o->range.lo;
    compute_parameters_of(plan, 1, &v);
    o->scale = v.scale[0];
    o->offset = v.offset[0];
    o->inverse_scale = v.inverse_scale[0];
}

/* A tensor, or one row after the other; the executor gets the units of each. */
static NPUQ_NOT_INLINED void run_one_range(const npuq_plan *of_call, const npuq_executor *executor)
{
    npuq_plan plan = *of_call;
    npuq_dynamic_own *own = npuq_set_own(&plan);
    one_range o;
    const bool only_ranges = own->step == NPUQ_FIND_RANGES;
    const size_t all = npuq_count_plan_rows(&plan);
    const size_t together = own->shared == NPUQ_SHARED_TENSOR ? all : 1;

    own->one = &o;
    for (size_t row = 0; row < all; row += together) {
        npuq_tile tile;

        find_range(&plan, row, together, executor);
        npuq_select_plan_tile(&plan, row, 1, 0, npuq_count_plan_columns(&plan), &tile);

        const npuq_fp_state caller = npuq_fp_enter(); /* x87 may trap when it copies a subnormal */
        if (only_ranges) {
            store_for_rows(&tile, &o.range.lo, &o.range.hi);
        } else {
            compute_parameters_of_range(&plan);
            store_for_rows(&tile, &o.scale, &o.offset);
        }
        npuq_fp_leave(&caller);
        if (!only_ranges) {
            plan.compute = requantise_part;
            npuq_run_plan(&plan, executor);
        }
    }
}

void npuq_run_dynamic(npuq_plan *plan, const npuq_executor *executor)
{
    if (npuq_get_dynamic(plan)->shared == NPUQ_SHARED_NONE) {
        npuq_run_plan(plan, executor);
    } else {
        run_one_range(plan, executor);
    }
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* Elements of x in a block. Halves are quantised so slowly that they may be read again from the second-level cache:
 * more rows then share the work of a block. With groups, the smooth scales leave the first-level cache anyway. */
static size_t count_block_elements(const npuq_plan *plan)
{
    const npuq_params smooth = npuq_find_column_params(plan, SMOOTH);
    const bool is_half = plan->setup.words[X].size < sizeof(float);
    const size_t bytes = !npuq_is_ready_smooth(&plan->setup, &smooth) ? NPUQ_BLOCK_BYTES_IN_L2
                         : plan->setup.memory.reads.from_memory       ? NPUQ_BLOCK_BYTES_FROM_MEMORY
                         : is_half || plan->groups.ends               ? NPUQ_BLOCK_BYTES_IN_L2
                                                                      : NPUQ_BLOCK_BYTES;

    return is_half ? bytes / sizeof(uint16_t) : bytes / sizeof(float);
}

void npuq_cut_whole_rows(npuq_plan *plan, const npuq_arguments *arguments, size_t cols)
{
    const size_t x_size = plan->setup.words[X].size;
    const bool across = npuq_is_column_major(plan, X);
    const size_t block_elements = count_block_elements(plan);
    size_t fitting = cols <= block_elements / ROWS ? ROWS : block_elements / cols; /* small calls are not divided */
    const size_t gathered = npuq_is_strided(plan, X) ? NPUQ_STAGED / x_size / cols : 0;
    size_t least = 1;

    if (gathered >= (across ? NPUQ_ACROSS_BYTES / 2 / x_size : 1)) { /* read once from where it is */
        fitting = gathered;
    } else if (across) {
        least = NPUQ_ACROSS_BYTES / x_size;
    }
    if (npuq_is_column_major(plan, arguments->tensors[Y] ? Y : X)) {
        least = ROWS;
    }
    plan->block_rows = fitting < least ? least : fitting > ROWS ? ROWS : fitting;
    if (plan->way != NPUQ_ONE_TILE) {
        npuq_plan_second_pass(&plan->setup.memory, plan->block_rows, cols, x_size);
        npuq_cut_plan(plan, arguments, cols < NPUQ_DYNAMIC_UNIT / least ? NPUQ_DYNAMIC_UNIT : least * cols,
                      NPUQ_WHOLE_ROWS);
    }
}

void npuq_set_divisors(npuq_plan *plan, npuq_dynamic_form form, uint32_t dst_type_max)
{
    npuq_dynamic_own *own = npuq_set_own(plan);
    const float most = npuq_limits_of(plan->setup.types[Y]).dmax;

    plan->setup.op = NPUQ_DIV;
    own->form = (uint8_t)form;
    own->dmax = (dst_type_max & 0x7FFFFFFFu) != 0 ? dst_type_max : npuq_bits_of_float(most);
}

npuq_status npuq_plan_dynamic(npuq_plan *plan, const npuq_arguments *arguments, const void *options)
{
    const npuq_dynamic_options *o = options;
    const npuq_tensor *const *tensors = arguments->tensors;
    const npuq_tensor *group_index = tensors[NPUQ_DYNAMIC_GROUPS];
    const bool per_tensor = o->quant_mode == NPUQ_PER_TENSOR;
    npuq_dynamic_own *own = npuq_set_own(plan);
    const npuq_steps steps = per_tensor && !tensors[SMOOTH] ? NPUQ_ONE : NPUQ_BY_ROW;
    npuq_status status;

    if ((group_index || !npuq_are_dense(arguments)) && (status = npuq_check_dynamic_values(arguments)) != NPUQ_OK) {
        return status;
    }
    const bool is_empty = !npuq_start_plan(plan, arguments, NPUQ_DYNAMIC_GROUPS, NPUQ_MUL, steps);

    own->form = (uint8_t)o->form;
    if (o->form == NPUQ_SYMMETRIC_DIVISOR) {
        npuq_set_divisors(plan, o->form, o->dst_type_max);
    } else {
        npuq_make_uint8_of_int8(&plan->setup);
    }
    own->step = (uint8_t)o->step;
    own->shared = NPUQ_SHARED_NONE;
    own->is_empty = is_empty;
    if (is_empty && (o->step != NPUQ_FIND_RANGES || npuq_count_elements(tensors[SCALE_OR_MIN]) == 0)) {
        return NPUQ_OK;
    }
    npuq_add_by_column(plan, arguments, SMOOTH);
    for (int i = SCALE_OR_MIN; i <= OFFSET_OR_MAX; i++) {
        if (per_tensor) {
            npuq_add_by_column(plan, arguments, i);
        } else {
            npuq_add_by_row(plan, arguments, i);
        }
    }
    for (int32_t i = 0; is_empty && i < plan->area.space.ndim; i++) {
        if (plan->area.space.extents[i] == 0 || per_tensor) { /* nothing to look at, but a range to put */
            plan->area.space.extents[i] = 1;
        }
    }
    npuq_finish_operands(plan, steps == NPUQ_ONE ? NPUQ_ANY_ORDER : NPUQ_KEEP_COLUMNS);

    const size_t rows = npuq_count_plan_rows(plan);
    const size_t cols = npuq_count_plan_columns(plan);

    plan->setup.f16_in_place = rows < CONVERTED_FROM * (group_index ? (size_t)group_index->shape[0] : 1);
    if (group_index) {
        const npuq_params smooth = npuq_find_column_params(plan, SMOOTH);

        npuq_add_groups(plan, arguments, group_index);
        plan->groups.share_tiles = cols >= NPUQ_SHORT && npuq_is_ready_smooth(&plan->setup, &smooth);
    }
    if (o->step == NPUQ_APPLY || is_empty) {
        plan->block_rows = ROWS;
        if (plan->way != NPUQ_ONE_TILE) {
            npuq_cut_plan(plan, arguments, NPUQ_DYNAMIC_UNIT, NPUQ_DYNAMIC_UNIT);
        }
    } else if (per_tensor ? rows > 1 || (int64_t)cols > arguments->small
                          : arguments->has_executor && cols >= NPUQ_LONG_ROW) {
        own->shared = per_tensor ? NPUQ_SHARED_TENSOR : NPUQ_SHARED_ROW;
        plan->way = plan->way == NPUQ_ONE_TILE ? NPUQ_FLAT : plan->way;
    } else if (plan->way != NPUQ_ONE_TILE || rows > 1) {
        npuq_cut_whole_rows(plan, arguments, cols);
    }
    npuq_cut_small(plan);
    return NPUQ_OK;
}

/* ---- parameters alone -------------------------------------------------------------------------------------------- */

enum { PARAMS_MIN = NPUQ_AT_X, PARAMS_SCALE = NPUQ_AT_Y, PARAMS_MAX = NPUQ_AFTER_Y, PARAMS_OFFSET };
#define NPUQ_PLACE(ROLE) PARAMS_##ROLE

static npuq_status check_params(const npuq_arguments *arguments, const void *options)
{
    static const char rule[] = "the shape of min";
    const npuq_dtype y_dtype = *(const npuq_dtype *)options;
    const bool symmetric = !arguments->tensors[PARAMS_OFFSET];
    const npuq_argument y = {.name = "y_dtype", .dtypes = symmetric ? NPUQ_SET(SYMMETRIC) : NPUQ_SET(NARROW)};
    const npuq_tensor *min = arguments->tensors[PARAMS_MIN];
    npuq_status status;

    if ((npuq_find_type(y_dtype)->set & y.dtypes) == 0) {
        return npuq_fail_dtype(arguments->signature->op, &y, y_dtype, "");
    }
    if ((status = npuq_check_shape(arguments, PARAMS_MAX, min->ndim, min->shape, rule)) != NPUQ_OK ||
        (status = npuq_check_shape(arguments, PARAMS_SCALE, min->ndim, min->shape, rule)) != NPUQ_OK) {
        return status;
    }
    return npuq_check_shape(arguments, PARAMS_OFFSET, min->ndim, min->shape, rule);
}

static void find_params_of_ranges(npuq_dynamic_form form, npuq_type y, const npuq_space *space)
{
    const npuq_fp_state caller = npuq_fp_enter();

    for (size_t row = 0; row < npuq_count_rows(space); row++) {
        for (size_t col = 0; col < npuq_count_columns(space); col += ROWS) {
            const size_t left = npuq_count_columns(space) - col;
            npuq_tile tile;
            row_values v;

            npuq_select_tile(space, row, 1, col, left < ROWS ? left : ROWS, &tile);
            load_values(tile.places[PARAMS_MIN].data, tile.places[PARAMS_MIN].col_stride, v.lo, tile.cols);
            load_values(tile.places[PARAMS_MAX].data, tile.places[PARAMS_MAX].col_stride, v.hi, tile.cols);
            compute_parameters(npuq_kernels(), form, y, tile.cols, &v);
            store_values(tile.places[PARAMS_SCALE].data, tile.places[PARAMS_SCALE].col_stride, v.scale, tile.cols);
            if (tile.places[PARAMS_OFFSET].data) {
                store_values(tile.places[PARAMS_OFFSET].data, tile.places[PARAMS_OFFSET].col_stride, v.offset,
                             tile.cols);
            }
        }
    }
    npuq_fp_leave(&caller);
}

npuq_status npuq_call_dynamic_params(npuq_dynamic_form form, const npuq_tensor *const *tensors, npuq_dtype y_dtype)
{
    static const npuq_signature asymmetric = NPUQ_SIGNATURE(dynamic_quant_params);
    static const npuq_signature symmetric = NPUQ_SIGNATURE(dynamic_quant_symmetric_params);
    const npuq_storage_word word = npuq_word_of(NPUQ_TYPE_FLOAT32);
    npuq_arguments arguments;
    npuq_space space;
    const npuq_status status = form == NPUQ_ASYMMETRIC
                                   ? npuq_check_call(&arguments, &asymmetric, tensors, check_params, &y_dtype, NULL)
                                   : npuq_check_call(&arguments, &symmetric, tensors, check_params, &y_dtype, NULL);

    if (status != NPUQ_OK || npuq_count_elements(tensors[PARAMS_MIN]) == 0) {
        return status;
    }
    npuq_start_space(&space, PARAMS_OFFSET + 1, tensors[PARAMS_MIN], word, word);
    for (int i = 0; i <= PARAMS_OFFSET; i++) {
        if (tensors[i]) {
            npuq_add_operand(&space, i, tensors[i]);
        }
    }
    npuq_normalise_space(&space, NPUQ_ANY_ORDER);
    find_params_of_ranges(form, y_dtype == NPUQ_UINT8 ? NPUQ_TYPE_INT8 : npuq_find_type(y_dtype)->type, &space);
    return NPUQ_OK;
}
