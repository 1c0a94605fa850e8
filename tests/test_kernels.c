/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kernel of the table, of every backend, against the reference: all lengths to 257 and some long ones, all
 * misalignments, several rows, every combination of optional arguments, random and adversarial data. Guard pages and
 * guard bytes surround all arrays. A fault fails the test of its kernel. Then what is constructed: every half, every
 * int8 and int4 times every bfloat16 scale, orders of values in ranges, scales at the ends, and places. */
#include "kernels.h"
#include "support.h"

#include "kinds/mx.h"
#include "ref/npuq_ref_element.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REF, BACKEND, BOTH };
enum { MOST_ARRAYS = 12, MAX_ROWS = 6, PAD = 64, CANARY = 0xA5, LONGEST = 65536 };

/* ---- a trial: a drawn call, made of ref and of a backend -------------------------------------------------------- */

/* An INPUT stays as it is. An OUTPUT has the same bytes after both calls; in FLOATS a NaN may have any payload. */
typedef enum array_use { INPUT, OUTPUT, FLOATS } array_use;

typedef struct array {
    size_t slot; /* of its address, in the call */
    unsigned char *contents;
    size_t size;
    size_t room; /* bytes behind it that may be read and written */
    array_use use;
    int of; /* REF's, BACKEND's, or BOTH have a copy */
} array;

typedef struct trial {
    const kernel_backend *backend;
    kernel_call call; /* without addresses */
    array arrays[MOST_ARRAYS];
    size_t count;
    size_t gap;        /* elements of x and of y, and some more, after an aligned address */
    bool half_columns; /* the backend takes parameters by column as halves */
    bool in_place;     /* the backend's y holds x */
} trial;

static trial now; /* also for the report of a fault */

static void describe(char *line, size_t size, const char *what)
{
    const kernel_id id = now.call.id;

    (void)snprintf(line, size, "%s: %s, %s, n = %zu, %zu rows, gap %zu", what, kernel_name(id), now.backend->name,
                   now.call.block.n, now.call.block.rows, now.gap);
}

/* Adds an array to the trial: its contents, to be drawn. */
#define SLOT(MEMBER) offsetof(kernel_call, MEMBER)
static void *add(size_t slot, size_t size, size_t room, array_use use, int of)
{
    unsigned char *contents = test_allocate(size + room);

    assert_true(now.count < MOST_ARRAYS);
    memset(contents, room ? 0xFF : CANARY, size + room);
    now.arrays[now.count++] = (array){slot, contents, size, room, use, of};
    return contents;
}

static void *add_input(size_t slot, size_t size)
{
    return add(slot, size, 0, INPUT, BOTH);
}

static size_t room_for_lanes(size_t n)
{
    return ((n + NPUQ_LANES - 1) / NPUQ_LANES * NPUQ_LANES - n) * sizeof(float);
}

static float *add_lanes(size_t slot, size_t n, array_use use)
{
    return add(slot, n * sizeof(float), room_for_lanes(n), use, BOTH);
}

/* A copy of an array, which a backend finds between guard bytes, or with its end against the guard page. */
typedef struct copy {
    unsigned char *memory;
    unsigned char *data;
    size_t size; /* of memory */
} copy;

static copy place(const array *a, int of)
{
    const bool is_x = a->slot == SLOT(block.x);
    const bool is_y = a->slot == SLOT(block.y);
    const size_t align = npuq_word_of(is_x ? now.call.id.x : now.call.id.y).size;
    const size_t gap = (is_x ? now.gap : is_y ? now.gap + now.gap / 16 : 0) * align % 64;
    const size_t guards = a->use == INPUT ? 0 : 2 * PAD;
    copy c = {.size = a->size + a->room + guards};

    c.memory = of == REF ? test_allocate(c.size) : test_guard(c.size, !is_x || test_one_in(2), gap);
    c.data = c.memory + (guards && test_one_in(2) ? PAD : guards);
    memset(c.memory, CANARY, c.size);
    memcpy(c.data, a->contents, a->size + a->room);
    return c;
}

/* Replaces every NaN by one pattern. */
static void canonical(void *floats, size_t size)
{
    const uint32_t nan = 0x7FC00000;

    for (unsigned char *at = floats, *end = at + size; at < end; at += sizeof(float)) {
        float value;

        memcpy(&value, at, sizeof value);
        memcpy(at, isnan(value) ? (const void *)&nan : at, sizeof nan);
    }
}

static void compare(const array *a, const copy copies[2], const char *line)
{
    for (int i = REF; i <= BACKEND; i++) {
        const copy *c = &copies[i];

        if (c->memory && a->use == FLOATS) {
            canonical(c->data, a->size);
        }
        for (unsigned char *p = c->memory; p && p < c->memory + c->size; p++) {
            if ((p < c->data || p >= c->data + a->size + a->room) && *p != CANARY) {
                fail_msg("overwrite %s: %s", p < c->data ? "left" : "right", line);
            }
        }
        if (c->memory && a->use == INPUT) {
            test_same(c->data, a->contents, a->size, "input changed: %s", line);
        }
    }
    if (a->of == BOTH && a->use != INPUT) {
        test_same(copies[BACKEND].data, copies[REF].data, a->size, "%s", line);
    }
}

/* Calls ref's kernel, then the backend's, each with its own copies. */
static void run_trial(void)
{
    copy copies[MOST_ARRAYS][2] = {{{NULL, NULL, 0}, {NULL, NULL, 0}}};
    char line[256];

    for (int of = REF; of <= BACKEND; of++) {
        kernel_call call = now.call;

        for (size_t i = 0; i < now.count; i++) {
            const array *a = &now.arrays[i];

            if (a->of == of || a->of == BOTH) {
                copies[i][of] = place(a, of);
                memcpy((char *)&call + a->slot, &copies[i][of].data, sizeof copies[i][of].data);
            }
        }
        if (of == BACKEND && now.half_columns) {
            *(call.id.kind == KERNEL_SMOOTHED_RANGES ? &call.params.range.half_columns
                                                     : &call.params.quant.half_columns) = true;
        }
        if (of == BACKEND && now.in_place) {
            call.block.x = call.block.y;
        }
        kernel_run(of == REF ? &npuq_rows_ref : now.backend->kernels, &call);
    }
    describe(line, sizeof line, "differs");
    for (size_t i = 0; i < now.count; i++) {
        compare(&now.arrays[i], copies[i], line);
        free(copies[i][REF].memory);
        free(now.arrays[i].contents);
    }
    test_free_guards();
}

/* ---- drawn parameters ------------------------------------------------------------------------------------------- */

/* Scales of one call. ORDINARY: kernels may take short cuts. ANY: sometimes any float at all. EXTREME: inverses and
 * remainders leave the range of normal numbers. */
typedef enum scale_kind { ORDINARY, ANY, EXTREME } scale_kind;

static float random_scale(scale_kind kind)
{
    static const uint32_t exponents[] = {0, 0, 1, 2, 10, 23, 40, 51, 62, 63, 64, 189, 190, 191, 230, 252, 253, 254};
    const float sign = test_one_in(4) ? -1.0f : 1.0f;

    if (kind == ANY && test_one_in(8)) {
        return test_float(false);
    }
    if (kind == EXTREME) {
        const uint32_t exponent = exponents[test_below(sizeof exponents / sizeof exponents[0])];
        return sign * npuq_ref_from_bits(exponent << 23 | (uint32_t)test_below(1u << 23));
    }
    return sign * (float)test_between(1, 4000) / 512.0f;
}

static void fill_scales(float *scales, size_t n, scale_kind kind)
{
    for (size_t i = 0; i < n; i++) {
        scales[i] = random_scale(kind);
    }
}

static float random_offset(void)
{
    return test_one_in(8) ? test_float(false) : test_one_in(2) ? (float)test_between(-128, 128) : test_float(true);
}

/* Offsets, or zeros of both signs, among them a single one, which kernels do not add. */
static void fill_offsets(float *offsets, size_t n)
{
    const bool zeros = test_one_in(4);

    for (size_t i = 0; i < n; i++) {
        offsets[i] = zeros ? (test_one_in(2) ? 0.0f : -0.0f) : random_offset();
    }
}

/* Halves of values by column for the backend, in place of floats, which are rounded to the same values. */
static void add_halves(size_t slot, float *values, size_t n, npuq_type type)
{
    uint16_t *halves = add(slot, n * sizeof *halves, 0, INPUT, BACKEND);
    const bool f16 = type == NPUQ_TYPE_FLOAT16;

    now.half_columns = true;
    for (size_t i = 0; i < n; i++) {
        halves[i] = f16 ? npuq_ref_to_float16(values[i]) : npuq_ref_to_bfloat16(values[i]);
        values[i] = f16 ? npuq_ref_float16(halves[i]) : npuq_ref_bfloat16(halves[i]);
    }
}

/* Values by column as floats, or for the backend as halves of x's type. */
static float *add_columns(size_t slot, size_t n, bool may_be_halves, scale_kind kind)
{
    const npuq_type x = now.call.id.x;
    const bool halves =
        may_be_halves && now.backend->kernels->takes_any_columns && x != NPUQ_TYPE_FLOAT32 && test_one_in(2);
    float *values = add(slot, n * sizeof *values, 0, INPUT, halves ? REF : BOTH);

    fill_scales(values, n, kind);
    if (halves) {
        add_halves(slot, values, n, x);
    }
    return values;
}

/* Smooth scales, which rows share, or which begin elsewhere for each. */
static void add_smooth(size_t slot, size_t offsets_slot, scale_kind kind)
{
    enum { APART = 8 };
    const npuq_block *b = &now.call.block;
    const bool apart = test_one_in(2);
    const size_t rows = (b->first_row + b->rows) * sizeof(ptrdiff_t);

    (void)add_columns(slot, b->n + (apart ? APART : 0), true, kind);
    if (apart) {
        ptrdiff_t *ref = add(offsets_slot, rows, 0, INPUT, REF);
        ptrdiff_t *backend = add(offsets_slot, rows, 0, INPUT, BACKEND);

        for (size_t i = 0; i < rows / sizeof *ref; i++) {
            ref[i] = (ptrdiff_t)(test_below(APART + 1) * sizeof(float));
            backend[i] = now.half_columns ? ref[i] / 2 : ref[i];
        }
    }
}

/* Rows with some elements between them; those of y may all have the same alignment. */
static void draw_strides(void)
{
    npuq_block *b = &now.call.block;
    const kernel_id id = now.call.id;
    const size_t y_row = kernel_y_bytes(id, b->n);
    const size_t between = test_below(3) * npuq_word_of(id.y).size;

    b->x_stride = (ptrdiff_t)(npuq_count_bytes(npuq_word_of(id.x), b->n) + test_below(3) * npuq_word_of(id.x).size);
    b->y_stride = (ptrdiff_t)(y_row + (test_one_in(2) ? (64 - y_row % 64) % 64 : between));
}

static unsigned char *add_rows(size_t slot, ptrdiff_t stride, size_t row, array_use use)
{
    return add(slot, (now.call.block.rows - 1) * (size_t)stride + row, 0, use, BOTH);
}

static void add_y(void)
{
    const npuq_block *b = &now.call.block;

    (void)add_rows(SLOT(block.y), b->y_stride, kernel_y_bytes(now.call.id, b->n), OUTPUT);
}

/* ---- kernels that quantise, and ranges ---- */

/* A tie of y's rounding. That of small floats is between two codes. */
static float draw_tie(npuq_type y)
{
    const npuq_ref_dtype dtype = (npuq_ref_dtype)kernel_types[y].dtype;
    uint32_t codes[2] = {0};

    ((uint8_t *)codes)[0] = (uint8_t)test_below(256);
    ((uint8_t *)codes)[1] = (uint8_t)(((uint8_t *)codes)[0] + 1);
    if (npuq_is_4_bit_float(y)) {
        ((uint8_t *)codes)[0] = (uint8_t)((((uint8_t *)codes)[0] & 15) | ((uint8_t *)codes)[1] << 4);
    }
    return npuq_is_small_float(y) ? (npuq_ref_load(codes, dtype, 0) + npuq_ref_load(codes, dtype, 1)) / 2
                                  : (float)test_between(-140, 270) + 0.5f;
}

/* A value that scale and offset map to a tie, or next to one: every rounding of the result shows. */
static float aim_at_tie(npuq_type y, float scale, float offset, bool divide)
{
    const float t = draw_tie(y) - offset;
    const float aimed = divide ? t * scale : t / scale;
    const int direction = (int)test_below(3);

    return direction == 0 ? aimed : nextafterf(aimed, direction == 1 ? INFINITY : -INFINITY);
}

/* Rows of x. Those of scales are aimed at ties; parameters of row r and column i are r * row_step + i * column_step. */
static void add_x(const float *scale, const float *offset, size_t row_step, size_t column_step)
{
    const npuq_block *b = &now.call.block;
    const kernel_id id = now.call.id;
    const size_t size = npuq_word_of(id.x).size;
    unsigned char *x = add_rows(SLOT(block.x), b->x_stride, b->n * size, INPUT);

    for (size_t row = 0; row < b->rows; row++, x += b->x_stride) {
        test_fill(x, kernel_types[id.x].dtype, b->n, !scale && !test_one_in(4));
        for (size_t i = 0; i < b->n && scale; i++) {
            if (test_one_in(3)) {
                const size_t at = (b->first_row + row) * row_step + i * column_step;
                const float value = aim_at_tie(id.y, scale[at], offset ? offset[at] : 0.0f, id.op == NPUQ_DIV);
                const uint16_t half = test_to_half(value, kernel_types[id.x].dtype);

                memcpy(x + i * size, id.x == NPUQ_TYPE_FLOAT32 ? (const void *)&value : &half, size);
            }
        }
    }
}

static void draw_flip(void)
{
    const kernel_id id = now.call.id;

    now.call.block.flip = id.y == NPUQ_TYPE_INT8 && id.op == NPUQ_MUL && test_one_in(2) ? 0x80 : 0;
}

/* Scales of microscaling for drawn x, and their shifts, which only backends read. */
static void add_shifted(size_t count)
{
    const kernel_id id = now.call.id;
    const npuq_mx options = {.rounding = now.call.params.quant.rounding, .small_groups = (int32_t)test_below(3)};
    const npuq_mx_rule rule = npuq_make_mx_rule(&options, id.x, id.y, false);
    npuq_block block = now.call.block;

    add_x(NULL, NULL, 0, 0);
    block.x = now.arrays[now.count - 1].contents;
    float *scale = add_lanes(SLOT(params.quant.scale), count, INPUT);
    uint16_t *shifts = add_input(SLOT(params.quant.smooth), count * sizeof *shifts);
    uint8_t *codes = test_allocate(count);

    if (id.kind == KERNEL_BY_RUN) {
        npuq_run_kernel(&npuq_rows_ref, id.x)(&block, now.call.params.quant.run, scale);
    } else {
        memset(scale, 0, count * sizeof *scale);
        npuq_column_kernel(&npuq_rows_ref, id.x)(&block, &(npuq_column_params){scale});
    }
    assert_ptr_equal(npuq_find_mx_scales(&rule, scale, count, codes, shifts), shifts);
    now.call.params.quant.has_shifts = true;
    free(codes);
}

static bool may_be_shifted(unsigned run)
{
    const kernel_id id = now.call.id;

    return id.x != NPUQ_TYPE_FLOAT32 && npuq_is_small_float(id.y) && id.y != NPUQ_TYPE_HIFLOAT8 &&
           id.y != NPUQ_TYPE_FLOAT4_E1M2 && id.op == NPUQ_MUL && run % NPUQ_LEAST_SHIFTED == 0 &&
           now.call.params.quant.rounding != (uint8_t)NPUQ_SMALL_FLOOR && test_one_in(2);
}

static void draw_quantised(void)
{
    const kernel_id id = now.call.id;
    npuq_block *b = &now.call.block;
    npuq_quant_params *p = &now.call.params.quant;
    const scale_kind kind = (scale_kind)test_below(3);
    const bool by_column = id.kind == KERNEL_BY_COLUMN;
    const bool has_4_bits = npuq_is_4_bit_float(id.y);
    const bool has_offset = !has_4_bits && !test_one_in(4);
    const size_t step = test_below(2); /* else one offset, and by row one scale */
    float *offset = NULL;

    b->first_row = by_column ? 0 : test_below(2);
    p->rounding = has_4_bits ? (uint8_t)test_below(3) : 0;
    p->steps = by_column ? (step && has_offset ? NPUQ_BY_COLUMN : NPUQ_SCALE_BY_COLUMN) : step ? NPUQ_BY_ROW : NPUQ_ONE;
    draw_strides();
    draw_flip();
    if (by_column && b->n > 0 && may_be_shifted(0)) {
        p->steps = NPUQ_SCALE_BY_COLUMN;
        add_shifted(b->n);
        add_y();
        return;
    }
    const size_t count = by_column ? b->n : step ? b->first_row + b->rows : 1;
    const size_t offsets = by_column && !step ? 1 : count;
    float *scale = add_columns(SLOT(params.quant.scale), count,
                               by_column && id.op == NPUQ_MUL && id.x == NPUQ_TYPE_BFLOAT16, kind);

    if (has_offset) {
        fill_offsets(offset = add_input(SLOT(params.quant.offset), offsets * sizeof *offset), offsets);
    }
    if (id.kind == KERNEL_SMOOTHED) {
        add_smooth(SLOT(params.quant.smooth), SLOT(params.quant.smooth_offsets), kind);
    }
    add_x(scale, offsets == count ? offset : NULL, by_column ? 0 : step, by_column);
    add_y();
}

/* One row in runs, which ends where its memory ends. The last run is often short. */
static unsigned draw_runs(size_t least)
{
    npuq_block *b = &now.call.block;
    const size_t most = NPUQ_LONGEST_RUN / least;
    const size_t run = least * (test_one_in(2) ? 1 + test_below(most) : (size_t)1 << test_below(5));

    b->rows = 1;
    if (b->n == 0 || test_one_in(2)) {
        b->n += run - b->n % run;
    }
    return (unsigned)run;
}

static size_t count_runs(size_t run)
{
    return (now.call.block.n + run - 1) / run;
}

static void draw_by_run(void)
{
    npuq_quant_params *p = &now.call.params.quant;

    p->steps = NPUQ_BY_RUN;
    p->rounding = npuq_is_4_bit_float(now.call.id.y) ? (uint8_t)test_below(3) : 0;
    p->run = draw_runs(NPUQ_LEAST_RUN);
    draw_strides();
    draw_flip();
    const size_t runs = count_runs(p->run);

    if (may_be_shifted(p->run)) {
        add_shifted(runs);
    } else {
        test_fill(add_lanes(SLOT(params.quant.scale), runs, INPUT), NPUQ_FLOAT32, runs, test_one_in(2));
        add_x(NULL, NULL, 0, 0);
    }
    add_y();
}

static void draw_column_magnitudes(void)
{
    const size_t n = now.call.block.n;

    draw_strides();
    add_x(NULL, NULL, 0, 0);
    float *largest = add_lanes(SLOT(params.columns.largest), n, FLOATS);

    for (size_t i = 0; i < n; i++) {
        largest[i] = test_one_in(2) ? 0.0f : 3.0f;
    }
}

static void draw_magnitudes(void)
{
    now.call.params.runs.run = draw_runs(NPUQ_LEAST_RUN);
    draw_strides();
    add_x(NULL, NULL, 0, 0);
    (void)add_lanes(SLOT(params.runs.largest), count_runs(now.call.params.runs.run), FLOATS);
}

static void draw_ranges(void)
{
    npuq_block *b = &now.call.block;

    b->first_row = test_below(2);
    draw_strides();
    if (now.call.id.kind == KERNEL_SMOOTHED_RANGES) {
        add_smooth(SLOT(params.range.smooth), SLOT(params.range.smooth_offsets), (scale_kind)test_below(3));
    }
    add_x(NULL, NULL, 0, 0);
    const size_t rows = b->first_row + b->rows;
    float *hi = add(SLOT(params.range.hi), rows * sizeof *hi, 0, OUTPUT, BOTH);
    float *lo = add(SLOT(params.range.lo), rows * sizeof *lo, 0, OUTPUT, BOTH);

    for (size_t r = 0; r < rows; r++) {
        const bool fresh = test_one_in(2);

        hi[r] = fresh ? -INFINITY : 3.0f;
        lo[r] = fresh ? INFINITY : -0.0f;
    }
}

/* ---- from integers ---- */

static float *add_factors(size_t slot, size_t n, bool ordinary)
{
    float *factors = add_input(slot, n * sizeof *factors);

    for (size_t i = 0; i < n; i++) {
        factors[i] =
            ordinary ? (test_one_in(4) ? -1.0f : 1.0f) * (float)test_between(1, 4000) / 65536.0f : test_float(false);
    }
    return factors;
}

/* Sums of all magnitudes, and a few at the ends. */
static void fill_ints(void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t ends[] = {INT32_MIN, INT32_MAX, 0, 1, -1};
        int32_t value = (int32_t)(int64_t)(test_random() >> 32) >> test_below(32);

        if (test_one_in(16)) {
            value = ends[test_below(sizeof ends / sizeof ends[0])];
        }
        memcpy((char *)p + i * sizeof value, &value, sizeof value);
    }
}

/* Offsets of y for int8, or the words that scale and offsets are: those are in place of them for the backend. */
static void add_y_offsets(float *scale, size_t count, bool as_words)
{
    int32_t *offsets = add_input(SLOT(params.dequant.y_offset), count * sizeof *offsets);

    for (size_t i = 0; i < count; i++) {
        offsets[i] = (int32_t)test_between(-256, 255);
    }
    if (as_words) {
        uint64_t *words = add(SLOT(params.dequant.words), count * sizeof *words, 0, INPUT, BACKEND);
        float *given = test_allocate(count * sizeof *given);

        for (size_t i = 0; i < count; i++) {
            given[i] = random_offset();
        }
        npuq_rows_ref.pack((uint32_t *)(void *)scale, given, words, count, NPUQ_ROUND_TRUNCATE);
        npuq_rows_ref.unpack(words, scale, offsets, count);
        free(given);
    }
}

static void draw_dequantised(void)
{
    const kernel_id id = now.call.id;
    npuq_block *b = &now.call.block;
    npuq_dequant_params *p = &now.call.params.dequant;
    const bool ordinary = !test_one_in(3);
    const bool from_int32 = id.x == NPUQ_TYPE_INT32;
    const bool to_int8 = id.y == NPUQ_TYPE_INT8;
    const bool has_powers = npuq_is_small_float(id.x) && ordinary;

    p->by_column = test_one_in(2);
    p->run = npuq_is_small_float(id.x) && !p->by_column ? draw_runs(NPUQ_LEAST_SHIFTED) : 0;
    draw_strides();
    now.in_place = from_int32 && id.y == NPUQ_TYPE_FLOAT32 && test_one_in(3);
    b->y_stride = now.in_place ? b->x_stride : b->y_stride;
    const bool as_words = now.backend->kernels->takes_any_columns && from_int32 && p->by_column &&
                          (to_int8 || id.y == NPUQ_TYPE_FLOAT16) && test_one_in(2);
    const size_t count = p->by_column ? b->n : p->run > 0 ? count_runs(p->run) : 1;
    const size_t x_row = npuq_count_bytes(npuq_word_of(id.x), b->n);
    float *scale = add_factors(SLOT(params.dequant.scale), count, ordinary);
    unsigned char *x = add_rows(SLOT(block.x), b->x_stride, x_row, INPUT);

    const unsigned bits = has_powers ? 0xBF : 0xFF; /* without NaN, powers of two are fast */

    for (size_t i = 0; i < now.arrays[now.count - 1].size; i++) {
        x[i] = (unsigned char)(test_random() & bits);
    }
    for (size_t i = 0; i < count && has_powers; i++) {
        scale[i] = ldexpf(1.0f, (int)test_between(-30, 30));
    }
    for (size_t r = 0; r < b->rows && from_int32; r++) {
        fill_ints(x + r * (size_t)b->x_stride, b->n);
    }
    if (as_words || (to_int8 && test_one_in(2))) {
        add_y_offsets(scale, count, as_words);
    }
    if (npuq_is_integer(id.x) && !from_int32 && test_one_in(2)) {
        (void)add_factors(SLOT(params.dequant.offset), count, ordinary);
    }
    if (from_int32 && test_one_in(2)) {
        fill_ints(add_input(SLOT(params.dequant.x_bias), b->n * sizeof(int32_t)), b->n);
    }
    if (from_int32 && !to_int8 && !as_words) {
        const size_t row_scales = test_below(3); /* none, for each row, by column */

        if (row_scales > 0) {
            (void)add_factors(row_scales == 1 ? SLOT(params.dequant.row_scale) : SLOT(params.dequant.row_scales),
                              row_scales == 1 ? b->rows : b->n, ordinary);
        }
        if (test_one_in(2)) {
            (void)add_factors(SLOT(params.dequant.bias), b->n, ordinary);
        }
    }
    add_y();
    if (now.in_place) {
        for (size_t r = 0; r < b->rows; r++) {
            memcpy(now.arrays[now.count - 1].contents + r * (size_t)b->y_stride, x + r * (size_t)b->x_stride, x_row);
        }
    }
}

/* ---- kernels without rows ---- */

#define Y(I) SLOT(params.values.y) + (I) * sizeof(void *)

/* Values of any kind, with few NaN and infinities, or zeros of both signs with rare NaN of either sign. */
static void draw_short_ranges(void)
{
    npuq_block *b = &now.call.block;
    const size_t kind = test_below(3);

    b->n = b->n % NPUQ_SHORT + 1;
    b->rows = test_below(NPUQ_SHORT_ROWS) + 1;
    const size_t count = b->rows * b->n;
    const size_t more = NPUQ_LANES * sizeof(float);
    float *values = add(Y(0), count * sizeof *values, more, FLOATS, BOTH);

    test_fill(values, NPUQ_FLOAT32, count, kind == 1);
    for (size_t i = 0; i < count && kind == 2; i++) {
        values[i] = test_one_in(40) ? npuq_ref_from_bits(test_one_in(2) ? 0x7F800001u : 0xFFC12345u)
                                    : npuq_ref_from_bits(test_one_in(2) ? 0 : 0x80000000u);
    }
    if (test_one_in(2)) {
        test_fill(add(SLOT(params.values.more), count * sizeof(float), more, INPUT, BOTH), NPUQ_FLOAT32, count,
                  test_one_in(2));
    }
    (void)add_lanes(Y(1), b->rows, OUTPUT);
    (void)add_lanes(Y(2), b->rows, OUTPUT);
}

/* All pairs of chosen values, which a caller may give, in turn, with random pairs of all magnitudes between them. */
static void draw_parameters(void)
{
    static const uint32_t chosen[] = {0x00000000u, 0x80000000u, 0x00000001u, 0x80000001u, 0x007FFFFFu, 0x807FFFFFu,
                                      0x00800000u, 0x80800000u, 0x2B8CBCCBu, 0x2B8CBCCCu, 0x2B8CBCCDu, 0xAB8CBCCCu,
                                      0x2F8C4D03u, 0x2F8C4D04u, 0x2F8C4D05u, 0x3F800000u, 0xBF800000u, 0x42FE0000u,
                                      0xC2FE0000u, 0x437F0000u, 0x7EFFFFFFu, 0xFEFFFFFFu, 0x7F7FFFFFu, 0xFF7FFFFFu,
                                      0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xFFC00001u, 0x7F800001u, 0xFFBFFFFFu};
    enum { CHOSEN = sizeof chosen / sizeof chosen[0] };
    static size_t next[NPUQ_SYMMETRIC_BLOCK + 1];
    npuq_block *b = &now.call.block;
    kernel_values *v = &now.call.params.values;

    b->n = b->n % 48 + 1;
    v->form = (npuq_dynamic_form)test_below(NPUQ_SYMMETRIC_BLOCK + 1);
    float *hi = add_lanes(SLOT(params.values.x), b->n, INPUT);
    float *lo = add_lanes(SLOT(params.values.more), b->n, INPUT);

    for (size_t i = 0; i < b->n; i++) {
        const size_t pair = next[v->form]++;

        hi[i] = test_one_in(3) ? test_float(true) : npuq_ref_from_bits(chosen[pair % CHOSEN]);
        lo[i] = test_one_in(3) ? test_float(true) : npuq_ref_from_bits(chosen[pair / CHOSEN % CHOSEN]);
    }
    for (size_t i = 0; i < 3; i++) {
        (void)add_lanes(Y(i), b->n, FLOATS);
    }
}

static void draw_packed(void)
{
    const size_t n = now.call.block.n;

    now.call.params.values.mode = test_one_in(2) ? NPUQ_ROUND_NEAREST : NPUQ_ROUND_TRUNCATE;
    test_fill(add_input(SLOT(params.values.x), n * sizeof(float)), NPUQ_FLOAT32, n, false);
    if (!test_one_in(3)) {
        test_fill(add_input(SLOT(params.values.more), n * sizeof(float)), NPUQ_FLOAT32, n, false);
    }
    (void)add(Y(0), n * sizeof(uint64_t), 0, OUTPUT, BOTH);
}

/* Random words; half of the arrays have bits that all words have, and bits that none has. */
static void add_words(void)
{
    const size_t n = now.call.block.n;
    uint64_t *words = add_input(SLOT(params.values.x), n * sizeof *words);
    const bool regular = test_one_in(2);

    for (size_t i = 0; i < n; i++) {
        words[i] = test_random();
        words[i] = regular ? (words[i] | (uint64_t)1 << 46) & ~((uint64_t)0x1F << 32) : words[i];
    }
}

static void draw_unpacked(void)
{
    const size_t n = now.call.block.n;

    add_words();
    (void)add(Y(0), n * sizeof(float), 0, OUTPUT, BOTH);
    if (!test_one_in(3)) {
        (void)add(Y(1), n * sizeof(int32_t), 0, OUTPUT, BOTH);
    }
}

static void draw_word_bits(void)
{
    add_words();
    (void)add(Y(0), sizeof(npuq_word_bits), 0, OUTPUT, BOTH);
}

/* Patterns of 8 or 16 bits in order, all in the longest array; integers of 32 bits of all magnitudes. */
static void draw_widened(void)
{
    const size_t n = now.call.block.n;
    const size_t size = npuq_word_of(now.call.id.x).size;
    unsigned char *x = add_input(SLOT(params.values.x), n * size);
    const uint32_t first = (uint32_t)test_random();

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t spread = (first + i) * 0x9E3779B1u;
        const uint32_t value = size < 4 ? first + i : (i & 1 ? spread : 0 - spread) >> (i / 2 % 32);
        const uint8_t byte = (uint8_t)value;
        const uint16_t half = (uint16_t)value;

        memcpy(x + i * size, size == 1 ? (const void *)&byte : size == 2 ? (const void *)&half : &value, size);
    }
    (void)add(Y(0), n * sizeof(float), 0, FLOATS, BOTH);
}

static void draw_spread(void)
{
    const npuq_block *b = &now.call.block;

    test_fill(add_input(SLOT(params.values.x), b->rows * sizeof(float)), NPUQ_FLOAT32, b->rows, true);
    (void)add(Y(0), b->rows * b->n * sizeof(float), NPUQ_LANES * sizeof(float), OUTPUT, BOTH);
}
#undef Y

/* ---- lengths, alignments, rows ---------------------------------------------------------------------------------- */

static const struct {
    void (*draw)(void);
    size_t rounds; /* of all lengths */
} kinds[KERNEL_KINDS] = {
    [KERNEL_BY_ROW] = {draw_quantised, 1},       [KERNEL_BY_COLUMN] = {draw_quantised, 1},
    [KERNEL_BY_RUN] = {draw_by_run, 3},          [KERNEL_SMOOTHED] = {draw_quantised, 1},
    [KERNEL_RANGES] = {draw_ranges, 1},          [KERNEL_SMOOTHED_RANGES] = {draw_ranges, 1},
    [KERNEL_MAGNITUDES] = {draw_magnitudes, 3},  [KERNEL_COLUMN_MAGNITUDES] = {draw_column_magnitudes, 3},
    [KERNEL_DEQUANTISE] = {draw_dequantised, 1}, [KERNEL_SHORT_RANGES] = {draw_short_ranges, 8},
    [KERNEL_PARAMETERS] = {draw_parameters, 8},  [KERNEL_PACK] = {draw_packed, 2},
    [KERNEL_UNPACK] = {draw_unpacked, 2},        [KERNEL_WORD_BITS] = {draw_word_bits, 2},
    [KERNEL_WIDEN] = {draw_widened, 1},          [KERNEL_SPREAD] = {draw_spread, 1},
};

static void try_length(const kernel_backend *backend, kernel_id id, size_t n, size_t gap)
{
    const npuq_storage_word x = npuq_word_of(id.x);
    const npuq_storage_word y = npuq_word_of(id.y);
    const size_t multiple = npuq_count_elements_in(x.log2_elements > y.log2_elements ? x : y);

    now = (trial){.backend = backend, .call = {.id = id}, .gap = gap};
    now.call.block.n = n - n % multiple;
    now.call.block.rows = n == LONGEST ? 1 : 1 + test_below(MAX_ROWS);
    kernel_choose_hints(&now.call.block);
    kinds[id.kind].draw();
    run_trial();
}

static void try_kernel(void *context, kernel_id id)
{
    static const size_t longer[] = {504, 1000, 1024, 2049, 3100, 4096, 4999, 8999, 33000, LONGEST};
    uint64_t *number = context;

    FOR_EACH_KERNELS(b)
    {
        test_reseed((*number)++);
        for (size_t round = 0; round < kinds[id.kind].rounds; round++) {
            for (size_t n = 0; n <= 257; n++) {
                try_length(b, id, n, test_below(64));
            }
        }
        for (size_t gap = 0; gap < 64; gap++) {
            try_length(b, id, 100 + test_below(300), gap); /* some long enough for non-temporal stores */
        }
        for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
            try_length(b, id, longer[i], test_below(64));
        }
    }
}

/* Without another backend than ref, skips the test. */
static void for_each_kernel(void (*visit)(void *context, kernel_id id), void *context)
{
    if (!kernel_backends()->name) {
        print_message("no backend but ref here\n");
        skip();
    }
    kernel_each(visit, context);
}

static void test_lengths(void **unused)
{
    uint64_t number = 1;

    (void)unused;
    for_each_kernel(try_kernel, &number);
}

/* ---- every half ---------------------------------------------------------------------------------------------------
 */

static void check_halves(void *context, kernel_id id)
{
    static const float scales[] = {1.0f, 0.1f, 3.0f, -0.0078125f, 1e-12f, 1e30f};
    static const float offsets[] = {0.0f, 0.5f, -1.1658f, 128.0f, -3e5f, 0.0f};
    enum { ALL = 65536 };
    static uint16_t x[ALL];
    static float scale[ALL];
    static uint32_t expected[ALL];
    static uint32_t got[ALL];
    const bool is_range = id.kind == KERNEL_RANGES || id.kind == KERNEL_SMOOTHED_RANGES;

    (void)context;
    if (id.x == NPUQ_TYPE_FLOAT32 || id.kind > KERNEL_SMOOTHED_RANGES || id.kind == KERNEL_BY_RUN) {
        return;
    }
    for (size_t i = 0; i < ALL; i++) {
        x[i] = (uint16_t)i;
    }
    for (size_t p = 0; p < sizeof scales / sizeof scales[0]; p++) {
        for (size_t i = 0; i < ALL; i++) {
            scale[i] = scales[p];
        }
        kernel_call call = kernel_make_call(id, (npuq_block){.x = x, .rows = 1, .n = ALL}, scale, &offsets[p]);

        FOR_EACH_KERNELS(b)
        {
            kernel_same(b, call, got, expected, kernel_y_bytes(id, ALL), p);
            call.block.n = 1;
            for (size_t i = 0; i < ALL && is_range && p == 0; i++) { /* also each pattern alone */
                call.block.x = &x[i];
                kernel_same(b, call, NULL, NULL, 0, i);
            }
            call.block.x = x;
            call.block.n = ALL;
        }
    }
}

static void test_halves(void **unused)
{
    (void)unused;
    for_each_kernel(check_halves, NULL);
}

/* ---- ranges of chosen values --------------------------------------------------------------------------------------
 */

/* Every sequence of two and three of the values that compare badly, in any lane. */
static void test_range_orders(void **unused)
{
    static const uint32_t bad[] = {0x00000000u, 0x80000000u, 0x7F800000u, 0xFF800000u, 0x7FC00000u,
                                   0xFFC12345u, 0x7F800001u, 0xFF800001u, 0x00000001u, 0x80000001u,
                                   0x3F800000u, 0xBF800000u, 0x7F7FFFFFu, 0xFF7FFFFFu};
    static const size_t lengths[] = {3, 41, 79, 517}; /* kernels first try the last as a row without signs */
    const size_t count = sizeof bad / sizeof bad[0];
    const kernel_id id = {KERNEL_RANGES, NPUQ_TYPE_FLOAT32, 0, 0};
    float x[517];

    (void)unused;
    for (size_t i = 0; i < count * count * count * 4; i++) {
        const size_t n = lengths[i % 4];

        for (size_t k = 0; k < n; k++) {
            x[k] = npuq_ref_from_bits(bad[i / 4 % count]);
        }
        x[test_below(n)] = npuq_ref_from_bits(bad[i / 4 / count % count]);
        x[test_below(n)] = npuq_ref_from_bits(bad[i / 4 / count / count]);
        FOR_EACH_KERNELS(b)
        {
            kernel_same(b, kernel_make_call(id, (npuq_block){.x = x, .rows = 1, .n = n}, NULL, NULL), NULL, NULL, 0, i);
        }
    }
}

/* ---- quotients by scales at the ends ------------------------------------------------------------------------------
 */

/* Divides rows of float32 to int32 by every backend: by all scales, and by the first for all columns. */
#define CHECK_QUOTIENTS(X, SCALE, OFFSET, NUMBER)                                                                      \
    check_quotients((npuq_block){.x = (X),                                                                             \
                                 .x_stride = sizeof *(X),                                                              \
                                 .y_stride = sizeof *(X),                                                              \
                                 .rows = sizeof(X) / sizeof *(X),                                                      \
                                 .n = sizeof *(X) / sizeof(float)},                                                    \
                    SCALE, OFFSET, sizeof(X), NUMBER)
static void check_quotients(npuq_block block, const float *scale, const float *offset, size_t size, size_t number)
{
    enum { MOST = 7 * 1043 };
    static int32_t got[MOST];
    static int32_t expected[MOST];

    assert_true(size <= sizeof got);
    FOR_EACH_KERNELS(b)
    {
        for (kernel_kind kind = KERNEL_BY_ROW; kind <= KERNEL_BY_COLUMN; kind++) {
            const kernel_id id = {kind, NPUQ_TYPE_FLOAT32, NPUQ_TYPE_INT32, NPUQ_DIV};

            kernel_same(b, kernel_make_call(id, block, scale, offset), got, expected, size, number);
        }
    }
}

/* x as close as possible to every half, where a remainder may be too small to be exact. */
static void test_extreme_scales(void **unused)
{
    enum { HALVES = 25, AROUND = 5, N = HALVES * AROUND, ROWS = 4, SCALES = 4000 };
    static float x[ROWS][N];
    static float scale[N];
    const float offset = 0.0f;

    (void)unused;
    for (size_t s = 0; s < SCALES; s++) {
        const float one = random_scale(EXTREME);

        for (size_t i = 0; i < N; i++) {
            const float half = (float)(i / AROUND) + 0.5f;
            float near = half * one;

            for (size_t step = i % AROUND; step > AROUND / 2; step--) {
                near = nextafterf(near, INFINITY);
            }
            for (size_t step = i % AROUND; step < AROUND / 2; step++) {
                near = nextafterf(near, -INFINITY);
            }
            scale[i] = one;
            for (size_t row = 0; row < ROWS; row++) {
                x[row][i] = row % 2 ? near : -near;
            }
        }
        CHECK_QUOTIENTS(x, scale, &offset, s);
    }
}

/* Rows without a certain strip, between other rows: values that an inverse cannot divide, and quotients near the
 * largest float, which an offset makes integers again. */
static void test_uncertain_quotients(void **unused)
{
    enum { N = 1043, ROWS = 7, SCALES = 400, KINDS = 6 };
    static float x[ROWS][N];
    static float scale[N];

    (void)unused;
    for (size_t s = 0; s < SCALES; s++) {
        const float one = random_scale(s % 2 ? EXTREME : ORDINARY);
        const float at_end = FLT_MAX * one;
        const float offset = s % 4 < 2 ? -FLT_MAX : 3.0f;

        for (size_t i = 0; i < N; i++) {
            const float values[KINDS] = {at_end, -at_end, nextafterf(at_end, 0.0f), INFINITY, -INFINITY, NAN};

            scale[i] = one;
            for (size_t row = 0; row < ROWS; row++) {
                const bool rare = (i + s) % 16 == row;
                x[row][i] = row % 3 == 2 || !rare ? (float)(i % 200) * one : values[(i / 16 + s / 4) % KINDS];
            }
        }
        CHECK_QUOTIENTS(x, scale, &offset, s);
    }
}

/* The last scale of a row has no usable inverse: x / scale is 3.5, and 3.4999998 by the inverse. Rows from memory begin
 * with a partial chunk, which moves their whole chunks. */
static void test_last_scale(void **unused)
{
    enum { N = 1027, ROWS = 5, LINE = 64 };
    static float x[ROWS][N];
    static float scale[N];
    static _Alignas(LINE) int8_t y[ROWS][N + 2 * LINE - N % LINE];
    static int8_t expected[ROWS][N + 2 * LINE - N % LINE];
    const kernel_id id = {KERNEL_BY_COLUMN, NPUQ_TYPE_FLOAT32, NPUQ_TYPE_INT8, NPUQ_DIV};
    const size_t span = sizeof y - LINE;

    (void)unused;
    for (size_t i = 0; i < N; i++) {
        scale[i] = 1.0f;
    }
    scale[N - 1] = 0x1.0785fcp-125f;
    for (size_t row = 0; row < ROWS; row++) {
        x[row][N - 1] = 0x1.cd2a78p-124f;
    }
    for (size_t i = 0; i < (size_t)LINE * 2 * ROWS; i++) {
        const size_t gap = i / 2 / ROWS;
        npuq_block block = {.x = x, .x_stride = sizeof x[0], .y_stride = sizeof y[0], .rows = 1 + i / 2 % ROWS, .n = N};

        block.hints = (npuq_hints){.from_memory = i % 2, .prefetch_bytes = i % 2 * 4096, .read_streams = 4};
        FOR_EACH_KERNELS(b)
        {
            kernel_same(b, kernel_make_call(id, block, scale, NULL), &y[0][gap], &expected[0][gap], span - gap, i);
        }
    }
}

/* ---- every code of 8 and 4 bits: with all bfloat16 scales, with one of each magnitude for all columns ------------ */

static void put_code(void *x, bool has_8_bits, size_t i, unsigned code)
{
    uint8_t *byte = (uint8_t *)x + (has_8_bits ? i : i / 2);

    *byte = (uint8_t)(has_8_bits ? code : i % 2 ? (*byte & 15) | code << 4 : code & 15);
}

/* Codes of small floats with all scales of FLOAT8_E8M0, neighbours with neighbours: most strips have no NaN. */
static void check_powers(const kernel_backend *b, kernel_call call, void *got, void *expected, size_t bytes)
{
    static uint8_t x[65536];
    static float scale[65536];

    for (size_t i = 0; i < 65536; i++) {
        put_code(x, npuq_bits_of(call.id.x) == 8, i, (unsigned)(i / 256 % 16 * 16 + i % 16));
        scale[i] = npuq_ref_float8_e8m0((uint8_t)(i / 4096 * 16 + i / 16 % 16));
    }
    call.block.x = x;
    call.params.dequant = (npuq_dequant_params){.scale = scale, .by_column = true};
    for (size_t i = 0; i < 2; i++) {
        call.block.hints = (npuq_hints){.from_memory = i, .read_streams = 1};
        kernel_same(b, call, got, expected, bytes, i);
    }
}

static void check_scales(void *context, kernel_id id)
{
    enum { SCALES = 65536, COLUMNS = 4096 };
    static float scale[SCALES];
    static float offset[SCALES];
    static uint32_t x[SCALES / 4];
    static uint32_t expected[SCALES];
    static _Alignas(64) uint32_t got[SCALES]; /* non-temporal stores begin with a line */
    const bool has_8_bits = npuq_bits_of(id.x) == 8;
    const bool has_offset = npuq_is_integer(id.x);
    const unsigned codes = has_8_bits ? 256 : 16;
    const size_t bytes = kernel_y_bytes(id, SCALES);
    kernel_call call = {.id = id, .block = {.x = x, .rows = 1, .n = SCALES}};

    (void)context;
    if (id.kind != KERNEL_DEQUANTISE || id.x == NPUQ_TYPE_INT32) {
        return;
    }
    for (uint32_t i = 0; i < SCALES; i++) {
        scale[i] = npuq_ref_from_bits(i << 16);
        offset[i] = (float)test_between(-300, 300) / 4.0f;
    }
    FOR_EACH_KERNELS(b)
    {
        for (unsigned i = 0; i < codes * 4; i++) { /* the loop from memory has non-temporal stores */
            memset(x, (int)(has_8_bits ? i / 4 : i / 4 * 0x11), sizeof x);
            call.block.n = SCALES;
            call.block.hints = (npuq_hints){.from_memory = i % 2, .read_streams = 1};
            call.params.dequant = (npuq_dequant_params){
                .scale = scale, .offset = has_offset && i / 2 % 2 ? offset : NULL, .by_column = true};
            memset(got, CANARY, bytes);
            kernel_same(b, call, got, expected, bytes, i);
        }
        if (npuq_is_small_float(id.x)) {
            check_powers(b, call, got, expected, bytes);
        }
        for (unsigned i = 0; i < COLUMNS; i++) {
            put_code(x, has_8_bits, i, i / 256 * 16 + i % 16);
        }
        call.block.n = COLUMNS;
        for (int exponent = -149; exponent < 128; exponent++) {
            const float one = ldexpf(exponent < 0 ? -1.0f : 1.0f, exponent);
            const float same[] = {one, one, one, one};

            call.params.dequant =
                (npuq_dequant_params){.scale = same, .run = npuq_is_small_float(id.x) ? COLUMNS / 4 : 0};
            kernel_same(b, call, got, expected, kernel_y_bytes(id, COLUMNS), (size_t)(exponent + 149));
        }
    }
}

/* Two factors, powers of two, whose product with 1 is about the least normal number: a scale and an offset, or a scale
 * by column and that of a row. */
static void check_least_results(void *context, kernel_id id)
{
    enum { ROWS = 4, COLUMNS = 256 };
    const bool from_int32 = id.x == NPUQ_TYPE_INT32;
    const ptrdiff_t x_stride = (ptrdiff_t)npuq_count_bytes(npuq_word_of(id.x), COLUMNS);
    const ptrdiff_t y_stride = (ptrdiff_t)kernel_y_bytes(id, COLUMNS);
    static int32_t x[ROWS * COLUMNS];
    static float expected[ROWS * COLUMNS];
    static float got[ROWS * COLUMNS];
    float scale[COLUMNS];
    float other[ROWS];

    (void)context;
    if (id.kind != KERNEL_DEQUANTISE || !npuq_is_float(id.y)) {
        return;
    }
    for (unsigned i = 0; i < ROWS * COLUMNS; i++) {
        x[i] = from_int32 ? (int32_t)i % 7 - 3 : (int32_t)(i * 0x01010101u);
    }
    for (int exponent = -140; exponent < 128; exponent++) {
        const int second = -126 - exponent + (int)test_between(-2, 2);
        const kernel_call call = {
            .id = id,
            .block = {.x = x, .x_stride = x_stride, .y_stride = y_stride, .rows = ROWS, .n = COLUMNS},
            .params.dequant = {.scale = scale,
                               .offset = npuq_is_integer(id.x) && !from_int32 ? other : NULL,
                               .row_scale = from_int32 ? other : NULL,
                               .by_column = from_int32 || npuq_is_small_float(id.x)}};

        for (unsigned i = 0; i < COLUMNS; i++) {
            scale[i] = ldexpf(1.0f, exponent);
            other[i % ROWS] = ldexpf(-1.0f, i % 2 || !from_int32 ? second : 0);
        }
        FOR_EACH_KERNELS(b)
        {
            kernel_same(b, call, got, expected, ROWS * (size_t)y_stride, (size_t)(exponent + 140));
        }
    }
}

static void test_scales(void **unused)
{
    (void)unused;
    for_each_kernel(check_scales, NULL);
    for_each_kernel(check_least_results, NULL);
}

/* ---- over the sums: what is not finite, at each place -------------------------------------------------------------
 */

static void test_places(void **unused)
{
    enum { N = 700, STEP = 704, ROWS = 2 };
    static const float others[] = {NAN, INFINITY, -INFINITY};
    static int32_t x[ROWS][STEP];
    static int32_t got[ROWS][STEP];
    static float expected[ROWS][STEP];
    static float scale[N];
    static float bias[N];
    kernel_call call = {.id = {KERNEL_DEQUANTISE, NPUQ_TYPE_INT32, NPUQ_TYPE_FLOAT32, 0},
                        .block = {.x_stride = sizeof x[0], .y_stride = sizeof x[0], .rows = ROWS, .n = N},
                        .params.dequant = {.scale = scale, .bias = bias, .by_column = true}};

    (void)unused;
    for (size_t i = 0; i < N; i++) {
        scale[i] = 0.5f;
        bias[i] = -1.0f;
        x[0][i] = (int32_t)test_between(-1000, 1000);
        x[1][i] = (int32_t)test_between(0, 1) * INT32_MAX;
    }
    for (size_t i = 0; i < (size_t)N * 6; i++) {
        float *const place = i % 2 ? &scale[i / 6] : &bias[i / 6];
        const float ordinary = *place;

        *place = others[i / 2 % 3];
        call.block.x = x;
        call.block.y = expected;
        kernel_run(&npuq_rows_ref, &call);
        FOR_EACH_KERNELS(b)
        {
            memcpy(got, x, sizeof got);
            call.block.x = call.block.y = got;
            kernel_choose_hints(&call.block);
            kernel_run(b->kernels, &call);
            test_same(got, expected, sizeof got, "%s, in place, %a at %zu", b->name, (double)*place, i / 6);
        }
        *place = ordinary;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),      cmocka_unit_test(test_halves),
        cmocka_unit_test(test_range_orders), cmocka_unit_test(test_extreme_scales),
        cmocka_unit_test(test_last_scale),   cmocka_unit_test(test_uncertain_quotients),
        cmocka_unit_test(test_scales),       cmocka_unit_test(test_places),
    };

    test_describe_faults(describe);
    test_seed();
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
