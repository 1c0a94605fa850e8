/* SPDX-License-Identifier: BSD-3-Clause */
/* Every row kernel of every backend against the reference: all lengths to 257 and some long ones, all misalignments,
 * several rows, random and adversarial data. Guard pages and guard bytes surround the output. A fault fails the test of
 * its kernel. Inputs of f16 and bf16 are exhaustive. */
#include "kernels.h"
#include "support.h"

#include "ref/npuq_ref_element.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 6, MAX_N = 9000, PAD = 64, CANARY = 0xA5, APART = 8 };

/* The running kernel, for the report of a fault. */
static struct {
    const char *backend;
    kernel_id id;
    size_t n;
    size_t rows;
    size_t x_gap;
    size_t y_gap;
} now;

static void describe(char *line, size_t size, const char *what)
{
    (void)snprintf(line, size, "%s: %s, %s, n = %zu, %zu rows, x at +%zu, y at +%zu", what, kernel_name(now.id),
                   now.backend, now.n, now.rows, now.x_gap, now.y_gap);
}

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

static float random_offset(void)
{
    return test_one_in(8) ? test_float(false) : test_one_in(2) ? (float)test_between(-128, 128) : test_float(true);
}

/* Values that the parameters map to a half, or next to one: every rounding of the result shows. */
static void aim_at_ties(float *x, size_t n, const float *scale, const float *offset, size_t scale_step,
                        size_t offset_step, bool divide)
{
    for (size_t i = 0; i < n; i++) {
        if (test_one_in(3)) {
            const float s = scale[i * scale_step];
            const float half = (float)test_between(-140, 270) + 0.5f;
            const float t = half - offset[i * offset_step];
            const float aimed = divide ? t * s : t / s;
            const int direction = (int)test_below(3);
            x[i] = direction == 0 ? aimed : nextafterf(aimed, direction == 1 ? INFINITY : -INFINITY);
        }
    }
}

/* ---- lengths, alignments, rows ---- */

typedef struct rig {
    float scale[MAX_N + MAX_ROWS];
    float offset[MAX_N + MAX_ROWS];
    float values[MAX_N + APART];
} rig;

/* Room before a guard page, and its first elements. */
static float *guarded_floats(const float *values, size_t n, size_t room)
{
    float *guarded = test_guard(room * sizeof *values, true, 0);

    memset(guarded, 0xFF, room * sizeof *values);
    if (values) {
        memcpy(guarded, values, n * sizeof *values);
    }
    return guarded;
}

/* Rounds values to float16 or bfloat16. */
static void make_halves(float *values, size_t n, npuq_type type, uint16_t *halves)
{
    for (size_t i = 0; i < n; i++) {
        const bool f16 = type == NPUQ_TYPE_FLOAT16;

        halves[i] = f16 ? npuq_ref_to_float16(values[i]) : npuq_ref_to_bfloat16(values[i]);
        values[i] = f16 ? npuq_ref_float16(halves[i]) : npuq_ref_bfloat16(halves[i]);
    }
}

static void fill_rows(rig *r, kernel_id id, unsigned char *x, size_t x_step, size_t rows, size_t n, size_t step)
{
    const size_t by_column = id.kind == UNIFORM || id.kind == SMOOTH_AFFINE ? 0 : 1;

    for (size_t row = 0; row < rows; row++) {
        const bool finite = (id.kind == RANGE || id.kind == SMOOTH_RANGE) && !test_one_in(4);
        unsigned char *at = x + row * x_step;

        test_fill(r->values, NPUQ_FLOAT32, n, finite);
        aim_at_ties(r->values, n, by_column ? r->scale : r->scale + row * step,
                    by_column ? r->offset : r->offset + row * step, by_column, by_column * step, id.op == NPUQ_DIV);
        if (id.x == NPUQ_TYPE_FLOAT32) {
            memcpy(at, r->values, n * sizeof *r->values);
        } else {
            for (size_t i = 0; i < n; i++) {
                const uint16_t half = test_to_half(r->values[i], kernel_types[id.x].dtype);
                memcpy(at + i * sizeof half, &half, sizeof half);
            }
        }
    }
}

/* x and y begin gap elements, and y some more, after an aligned address. */
static void check(const kernel_backend *backend, kernel_id id, size_t n, size_t rows, size_t gap, rig *r)
{
    const scale_kind kind = (scale_kind)test_below(3);
    const size_t step = test_below(2);
    const size_t x_size = kernel_x_size(id);
    const size_t y_bytes = kernel_y_bytes(id, n);
    const size_t y_align = npuq_word_of(id.y).size;
    const size_t x_step = n * x_size + test_below(3) * x_size;
    const size_t y_gap =
        test_one_in(2) ? (64 - y_bytes % 64) % 64 : test_below(3) * y_align; /* or each row has the same alignment */
    const size_t y_step = y_bytes + (y_bytes ? y_gap : 0);
    const size_t x_bytes = (rows - 1) * x_step + n * x_size;
    const size_t y_span = (rows - 1) * y_step + y_bytes;
    const bool at_end = test_one_in(2);
    const size_t params = id.kind == UNIFORM || id.kind == SMOOTH_AFFINE ? rows * step + 1 : n;
    unsigned char *expected = test_allocate(y_span + 2 * PAD);
    const bool apart = (id.kind == SMOOTH_RANGE || id.kind == SMOOTH_AFFINE) && test_one_in(2);
    const size_t smooths = apart ? n + APART : n;
    const size_t first = id.kind == VECTOR ? 0 : test_below(2); /* row, whose parameters are not the first ones */
    ptrdiff_t offsets[2][MAX_ROWS + 1];                         /* from the first smooth scale to each row's */
    float hi[2][MAX_ROWS + 1];
    float lo[2][MAX_ROWS + 1];
    char line[256];

    now.backend = backend->name;
    now.id = id;
    now.n = n;
    now.rows = rows;
    now.x_gap = gap * x_size % 64;
    now.y_gap = (gap + gap / 16) * y_align % 64;
    for (size_t i = 0; i < n + MAX_ROWS; i++) {
        r->scale[i] = random_scale(kind);
        r->offset[i] = random_offset();
    }
    if (test_one_in(4)) { /* kernels do not add a single zero */
        r->offset[0] = test_one_in(2) ? 0.0f : -0.0f;
    }
    const bool has_offset = !test_one_in(4);
    for (size_t i = 0; i < n + MAX_ROWS && !has_offset; i++) {
        r->offset[i] = test_one_in(2) ? 0.0f : -0.0f;
    }

    const bool half_columns =
        backend->kernels->takes_any_columns && id.x != NPUQ_TYPE_FLOAT32 &&
        (id.kind == VECTOR ? id.op == NPUQ_MUL && id.x == NPUQ_TYPE_BFLOAT16 : id.kind != UNIFORM) && test_one_in(2);
    uint16_t *halves = test_guard(smooths * sizeof *halves, true, 0);
    if (half_columns && id.kind == VECTOR) {
        make_halves(r->scale, n, id.x, halves);
    }
    unsigned char *x = test_guard(x_bytes, at_end, now.x_gap);
    unsigned char *y = test_guard(y_span + 2 * PAD, true, now.y_gap);
    fill_rows(r, id, x, x_step, rows, n, step);
    const size_t offset_count = id.kind == VECTOR && step == 0 ? 1 : params;
    const float *scale = guarded_floats(r->scale, params, params);
    const float *offset = guarded_floats(r->offset, offset_count, offset_count);
    for (size_t i = 0; i < smooths; i++) {
        r->values[i] = random_scale(kind);
    }
    if (half_columns && id.kind != VECTOR) {
        make_halves(r->values, smooths, id.x, halves);
    }
    const float *smooth = guarded_floats(r->values, smooths, smooths);

    memset(y, CANARY, y_span + 2 * PAD);
    memset(expected, CANARY, y_span + 2 * PAD);
    for (size_t row = 0; row < first + rows; row++) {
        const bool fresh = test_one_in(2);
        hi[0][row] = hi[1][row] = fresh ? -INFINITY : 3.0f;
        lo[0][row] = lo[1][row] = fresh ? INFINITY : -0.0f;
        offsets[0][row] = (ptrdiff_t)(test_below(APART + 1) * sizeof(float));
        offsets[1][row] = half_columns ? offsets[0][row] / 2 : offsets[0][row];
    }

    kernel_arguments arguments = {
        .block = {x, expected + PAD, (ptrdiff_t)x_step, (ptrdiff_t)y_step, rows, n, first, {.prefetch_bytes = 0}, 0},
        .scale = scale,
        .offset = offset,
        .step = step,
        .smooth = smooth,
        .smooth_offsets = apart ? offsets[0] : NULL,
        .hi = hi[0],
        .lo = lo[0],
    };
    kernel_choose_hints(&arguments.block);
    if (id.y == NPUQ_TYPE_INT8 && id.op == NPUQ_MUL) {
        arguments.block.flip = test_one_in(2) ? 0x80 : 0;
    }
    /* between guard bytes, or before them, or against the guard page when gap is 0 */
    unsigned char *target = y + PAD + (test_one_in(2) ? PAD : 0);
    if (!has_offset && test_one_in(2)) { /* else the reference adds a zero, which changes no integer */
        arguments.offset = NULL;
    }
    kernel_run(&npuq_rows_ref, id, &arguments);
    if (!has_offset) {
        arguments.offset = NULL;
    }
    arguments.block.y = target;
    arguments.smooth_offsets = apart ? offsets[1] : NULL;
    arguments.hi = hi[1];
    arguments.lo = lo[1];
    if (half_columns) {
        *(id.kind == VECTOR ? &arguments.scale : &arguments.smooth) = halves;
    }
    arguments.half_columns = half_columns;
    kernel_run(backend->kernels, id, &arguments);

    describe(line, sizeof line, "differs");
    test_same(target, expected + PAD, y_span, "%s", line);
    test_same(hi[1], hi[0], sizeof(float) * (first + rows), "%s", line);
    test_same(lo[1], lo[0], sizeof(float) * (first + rows), "%s", line);
    for (unsigned char *p = y; p < y + y_span + 2 * PAD; p++) {
        if ((p < target || p >= target + y_span) && *p != CANARY) {
            fail_msg("overwrite %s: %s", p < target ? "left" : "right", line);
        }
    }

    test_free_guards();
    free(expected);
}

typedef struct sweep {
    const kernel_backend *backend;
    rig *rig;
    uint64_t number;
} sweep;

static void check_lengths(void *context, kernel_id id)
{
    static const size_t longer[] = {504, 1000, 1024, 2049, 3100, 4096, 4999, 8999};
    sweep *s = context;

    test_reseed(s->number++);
    for (size_t n = 0; n <= 257; n++) {
        check(s->backend, id, n - n % kernel_multiple(id), 1 + test_below(MAX_ROWS), test_below(64), s->rig);
    }
    for (size_t gap = 0; gap < 64; gap++) {
        const size_t n = 100 + test_below(100);
        check(s->backend, id, n - n % kernel_multiple(id), 2, gap, s->rig);
    }
    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
        check(s->backend, id, longer[i] - longer[i] % kernel_multiple(id), 1 + test_below(MAX_ROWS), test_below(64),
              s->rig);
    }
}

static void for_each_backend(void (*visit)(void *context, kernel_id id))
{
    rig *r = test_allocate(sizeof *r);

    FOR_EACH_KERNELS(b)
    {
        sweep s = {b, r, 1};
        kernel_each(visit, &s);
        print_message("%s is equal to ref\n", b->name);
    }
    free(r);
    if (!kernel_backends()->name) {
        print_message("no backend but ref here\n");
        skip();
    }
}

static void test_lengths(void **unused)
{
    (void)unused;
    for_each_backend(check_lengths);
}

/* y of no kernel has -0, so this asks the arithmetic of the reference. */
static void test_absent_offset(void **unused)
{
    const float zero = 0.0f;

    (void)unused;
    for (int divide = 0; divide < 2; divide++) {
        const float without = npuq_ref_affine(-0.0f, 3.0f, NULL, divide);
        const float with = npuq_ref_affine(-0.0f, 3.0f, &zero, divide);

        assert_int_equal(npuq_ref_to_bits(without), 0x80000000u);
        assert_int_equal(npuq_ref_to_bits(with), 0);
    }
}

/* ---- every half ---- */

static void check_halves(void *context, kernel_id id)
{
    static const float scales[] = {1.0f, 0.1f, 3.0f, -0.0078125f, 1e-12f, 1e30f};
    static const float offsets[] = {0.0f, 0.5f, -1.1658f, 128.0f, -3e5f, 0.0f};
    enum { ALL = 65536 };
    static uint16_t x[ALL];
    static float scale[ALL];
    static float offset[ALL];
    static uint32_t expected[ALL];
    static uint32_t got[ALL];
    const sweep *s = context;
    kernel_arguments a = {.block = {.x = x, .rows = 1}, .scale = scale, .offset = offset, .smooth = scale};

    if (id.x == NPUQ_TYPE_FLOAT32) {
        return;
    }
    for (size_t i = 0; i < ALL; i++) {
        x[i] = (uint16_t)i;
    }
    for (size_t p = 0; p < sizeof scales / sizeof scales[0]; p++) {
        for (size_t i = 0; i < ALL; i++) {
            scale[i] = scales[p];
            offset[i] = offsets[p];
        }
        a.block.n = ALL;
        kernel_same(s->backend, id, a, got, expected, kernel_y_bytes(id, ALL), p);
    }
    for (size_t i = 0; i < ALL && (id.kind == RANGE || id.kind == SMOOTH_RANGE); i++) { /* also each pattern alone */
        a.block.x = &x[i];
        a.block.n = 1;
        kernel_same(s->backend, id, a, NULL, NULL, 0, i);
    }
}

static void test_halves(void **unused)
{
    (void)unused;
    for_each_backend(check_halves);
}

/* ---- ranges of chosen values ---- */

/* Every sequence of two and three of the values that compare badly, in any lane. */
static void check_range_orders(void *context, kernel_id id)
{
    static const uint32_t bad[] = {0x00000000u, 0x80000000u, 0x7F800000u, 0xFF800000u, 0x7FC00000u,
                                   0xFFC12345u, 0x7F800001u, 0xFF800001u, 0x00000001u, 0x80000001u,
                                   0x3F800000u, 0xBF800000u, 0x7F7FFFFFu, 0xFF7FFFFFu};
    static const size_t lengths[] = {3, 41, 79, 517}; /* kernels first try the last as a row without signs */
    const size_t count = sizeof bad / sizeof bad[0];
    const sweep *s = context;

    if (id.kind != RANGE || id.x != NPUQ_TYPE_FLOAT32) {
        return;
    }
    for (size_t i = 0; i < count * count * count; i++) {
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            const size_t n = lengths[l];
            float x[517];

            for (size_t k = 0; k < n; k++) {
                x[k] = npuq_ref_from_bits(bad[i % count]);
            }
            x[test_below(n)] = npuq_ref_from_bits(bad[i / count % count]);
            x[test_below(n)] = npuq_ref_from_bits(bad[i / count / count]);
            kernel_same(s->backend, id, (kernel_arguments){.block = {.x = x, .rows = 1, .n = n}}, NULL, NULL, 0, i);
        }
    }
}

static void test_range_orders(void **unused)
{
    (void)unused;
    for_each_backend(check_range_orders);
}

/* ---- quotients by scales at the ends ---- */

/* Divides float32 to int32 by every backend: by all scales, and by the first for all columns, with equal results. */
static void check_quotients(kernel_arguments a, void *got, void *expected, size_t size, size_t number)
{
    kernel_id id = {VECTOR, NPUQ_TYPE_FLOAT32, NPUQ_TYPE_INT32, NPUQ_DIV};

    FOR_EACH_KERNELS(backend)
    {
        for (id.kind = UNIFORM; id.kind <= VECTOR; id.kind++) {
            kernel_same(backend, id, a, got, expected, size, number);
        }
    }
}

/* x as close as possible to every half, where a remainder may be too small to be exact. */
static void test_extreme_scales(void **unused)
{
    enum { HALVES = 25, AROUND = 5, N = HALVES * AROUND, ROWS = 4, SCALES = 4000 };
    static float x[ROWS][N];
    static float scale[N];
    static float offset[N];
    static int32_t got[ROWS][N];
    static int32_t expected[ROWS][N];
    const kernel_arguments a = {
        .block = {.x = x, .x_stride = sizeof x[0], .y_stride = sizeof got[0], .rows = ROWS, .n = N},
        .scale = scale,
        .offset = offset,
    };

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
        check_quotients(a, got, expected, sizeof got, s);
    }
}

/* The last scale of a row has no usable inverse: x / scale is 3.5, and 3.4999998 by the inverse. Rows from memory begin
 * with a partial chunk, which moves their whole chunks. */
static void check_last_scale(const kernel_backend *backend)
{
    enum { N = 1027, ROWS = 5, LINE = 64 };
    static float x[ROWS][N];
    static float scale[N];
    static const float offset[1];
    static _Alignas(LINE) int8_t y[ROWS][N + 2 * LINE - N % LINE];
    static int8_t expected[ROWS][N + 2 * LINE - N % LINE];
    const kernel_id id = {VECTOR, NPUQ_TYPE_FLOAT32, NPUQ_TYPE_INT8, NPUQ_DIV};
    kernel_arguments a = {
        .block = {.x = x, .x_stride = sizeof x[0], .y_stride = sizeof y[0], .n = N, .hints = {.read_streams = 4}},
        .scale = scale,
        .offset = offset,
    };

    for (size_t i = 0; i < N; i++) {
        scale[i] = 1.0f;
    }
    scale[N - 1] = 0x1.0785fcp-125f;
    for (size_t row = 0; row < ROWS; row++) {
        x[row][N - 1] = 0x1.cd2a78p-124f;
    }
    for (size_t gap = 0; gap < LINE; gap++) {
        for (size_t k = 0; k < 2 * ROWS; k++) {
            a.block.rows = 1 + k / 2;
            a.block.hints.from_memory = k % 2;
            a.block.hints.prefetch_bytes = k % 2 * 4096;
            a.block.y = &expected[0][gap];
            kernel_run(&npuq_rows_ref, id, &a);
            a.block.y = &y[0][gap];
            kernel_run(backend->kernels, id, &a);
            test_same(y, expected, sizeof y, "%s, gap %zu, %zu rows, from memory: %zu", backend->name, gap,
                      a.block.rows, k % 2);
        }
    }
}

static void test_last_scale(void **unused)
{
    (void)unused;
    FOR_EACH_KERNELS(b)
    {
        check_last_scale(b);
    }
}

/* Rows without a certain strip, between other rows: values that an inverse cannot divide, and quotients near the
 * largest float, which an offset makes integers again. */
static void test_uncertain_quotients(void **unused)
{
    enum { N = 1043, ROWS = 7, SCALES = 400, KINDS = 6 };
    static float x[ROWS][N];
    static float scale[N];
    static float offset[N];
    static int32_t got[ROWS][N];
    static int32_t expected[ROWS][N];
    const kernel_arguments a = {
        .block = {.x = x, .x_stride = sizeof x[0], .y_stride = sizeof got[0], .rows = ROWS, .n = N},
        .scale = scale,
        .offset = offset,
    };

    (void)unused;
    for (size_t s = 0; s < SCALES; s++) {
        const float one = random_scale(s % 2 ? EXTREME : ORDINARY);
        const float at_end = FLT_MAX * one;

        for (size_t i = 0; i < N; i++) {
            const float values[KINDS] = {at_end, -at_end, nextafterf(at_end, 0.0f), INFINITY, -INFINITY, NAN};

            scale[i] = one;
            offset[i] = s % 4 < 2 ? -FLT_MAX : 3.0f;
            for (size_t row = 0; row < ROWS; row++) {
                const bool rare = (i + s) % 16 == row;
                x[row][i] = row % 3 == 2 || !rare ? (float)(i % 200) * one : values[(i / 16 + s / 4) % KINDS];
            }
        }
        check_quotients(a, got, expected, sizeof got, s);
    }
}

/* ---- the packer ---- */

static void test_pack(void **unused)
{
    enum { MOST = 300 };
    float scale[MOST];
    float offset[MOST];
    uint32_t bits[MOST];
    uint64_t expected[MOST];

    (void)unused;
    FOR_EACH_KERNELS(b)
    {
        for (size_t n = 0; n <= MOST; n++) {
            for (npuq_round_mode mode = NPUQ_ROUND_TRUNCATE; mode <= NPUQ_ROUND_NEAREST; mode++) {
                uint64_t *y = test_guard(n * sizeof *y, true, 0);
                const float *given = test_one_in(3) ? NULL : offset;

                test_fill(scale, NPUQ_FLOAT32, n, false);
                test_fill(offset, NPUQ_FLOAT32, n, false);
                memcpy(bits, scale, n * sizeof *bits);
                npuq_rows_ref.pack(bits, given, expected, n, mode);
                b->kernels->pack(bits, given, y, n, mode);
                test_same(y, expected, n * sizeof *expected, "pack, %s, n = %zu", b->name, n);
                test_free_guards();
            }
        }
    }
}

static void test_unpack(void **unused)
{
    enum { MOST = 300 };
    uint64_t random[MOST];
    float expected_scale[MOST];
    int32_t expected_offset[MOST];

    (void)unused;
    FOR_EACH_KERNELS(b)
    {
        for (size_t n = 0; n <= MOST; n++) {
            uint64_t *y = test_guard(n * sizeof *y, true, 0);
            float *scale = test_guard(n * sizeof *scale, true, 0);
            int32_t *offset = test_guard(n * sizeof *offset, true, 0);

            for (size_t i = 0; i < n; i++) {
                random[i] = test_random();
                if (n % 2 == 0) { /* bits that all words have, or none */
                    random[i] = (random[i] | (uint64_t)1 << 46) & ~((uint64_t)0x1F << 32);
                }
            }
            memcpy(y, random, n * sizeof *random);
            npuq_rows_ref.unpack(random, expected_scale, expected_offset, n);
            b->kernels->unpack(y, scale, offset, n);
            test_same(scale, expected_scale, n * sizeof *scale, "unpack, %s, n = %zu", b->name, n);
            test_same(offset, expected_offset, n * sizeof *offset, "unpack, %s, n = %zu", b->name, n);
            memset(scale, 0, n * sizeof *scale);
            b->kernels->unpack(y, scale, NULL, n);
            test_same(scale, expected_scale, n * sizeof *scale, "unpack scales, %s, n = %zu", b->name, n);

            const npuq_word_bits expected = npuq_rows_ref.word_bits(random, n);
            const npuq_word_bits got = b->kernels->word_bits(y, n);

            assert_int_equal(got.any, expected.any);
            assert_int_equal(got.all, expected.all);
            test_free_guards();
        }
    }
}

/* ---- widening ---- */

enum { WIDENED = 65536 };

/* Every pattern of 8 or 16 bits, or 32-bit integers of all magnitudes. */
static void fill_parameters(void *p, size_t size)
{
    for (uint32_t i = 0; i < WIDENED; i++) {
        const uint32_t spread = i * 0x9E3779B1u;
        const uint32_t value = size < 4 ? i : (i & 1 ? spread : 0 - spread) >> (i / 2 % 32);

        switch (size) {
        case 1: ((uint8_t *)p)[i] = (uint8_t)value; break;
        case 2: ((uint16_t *)p)[i] = (uint16_t)value; break;
        default: ((uint32_t *)p)[i] = value; break;
        }
    }
}

static void check_widen(npuq_widen_fn *widen, npuq_widen_fn *reference, size_t size, const char *name)
{
    static uint32_t x[WIDENED];
    static float got[WIDENED];
    static float expected[WIDENED];

    fill_parameters(x, size);
    widen(x, got, WIDENED);
    reference(x, expected, WIDENED);
    for (size_t i = 0; i < WIDENED; i++) {
        if (!isnan(got[i]) || !isnan(expected[i])) {
            test_same(&got[i], &expected[i], sizeof *got, "widen %s, element %zu", name, i);
        }
    }
    for (size_t n = 0; n <= 257; n++) {
        void *from = test_guard(n * size, true, 0);
        float *to = test_guard(n * sizeof *to, true, 0);

        memcpy(from, (const char *)x + 1000 * size, n * size);
        widen(from, to, n);
        test_same(to, expected + 1000, n * sizeof *got, "widen %s, n = %zu", name, n);
        test_free_guards();
    }
}

static void test_widen(void **unused)
{
    (void)unused;
    FOR_EACH_KERNELS(b)
    {
        for (npuq_type p = 0; p < NPUQ_ROW_TYPES; p++) {
            char name[32];

            if (!npuq_index_of_kernels.widen[p]) {
                continue;
            }
            (void)snprintf(name, sizeof name, "%s, %s", kernel_types[p].name, b->name);
            check_widen(npuq_widen_kernel(b->kernels, p), npuq_widen_kernel(&npuq_rows_ref, p), npuq_word_of(p).size,
                        name);
        }
    }
}

/* ---- short rows, and the parameters of dynamic quantisation ---- */

/* Replaces every NaN by one pattern. */
static void canonical(float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = isnan(values[i]) ? npuq_ref_from_bits(0x7FC00000u) : values[i];
    }
}

static size_t whole_lanes(size_t n)
{
    return (n + NPUQ_LANES - 1) / NPUQ_LANES * NPUQ_LANES;
}

/* Values of any kind, with few NaN and infinities, or zeros of both signs with rare NaN of either sign. */
static void fill_short(float *values, size_t n)
{
    const size_t kind = test_below(3);

    test_fill(values, NPUQ_FLOAT32, n, kind == 1);
    for (size_t i = 0; i < n && kind == 2; i++) {
        values[i] = test_one_in(40) ? npuq_ref_from_bits(test_one_in(2) ? 0x7F800001u : 0xFFC12345u)
                                    : npuq_ref_from_bits(test_one_in(2) ? 0 : 0x80000000u);
    }
}

static void check_short_rows(const kernel_backend *backend, size_t n, size_t rows)
{
    enum { MOST = NPUQ_SHORT * NPUQ_SHORT_ROWS };
    const size_t count = rows * n;
    const size_t room = whole_lanes(rows);
    const bool smooth = test_one_in(2);
    float values[MOST];
    float factors[MOST];
    float hi[NPUQ_SHORT_ROWS];
    float lo[NPUQ_SHORT_ROWS];

    fill_short(values, count);
    test_fill(factors, NPUQ_FLOAT32, count, test_one_in(2));
    float *got = guarded_floats(values, count, count + NPUQ_LANES);
    const float *by = guarded_floats(factors, count, count + NPUQ_LANES);
    float *got_hi = guarded_floats(NULL, 0, room);
    float *got_lo = guarded_floats(NULL, 0, room);

    npuq_rows_ref.short_rows(values, smooth ? factors : NULL, n, rows, hi, lo);
    backend->kernels->short_rows(got, smooth ? by : NULL, n, rows, got_hi, got_lo);
    canonical(values, count);
    canonical(got, count);
    test_same(got, values, count * sizeof *got, "short rows, %s, %zu x %zu", backend->name, rows, n);
    test_same(got_hi, hi, rows * sizeof *hi, "maxima of short rows, %s, %zu x %zu", backend->name, rows, n);
    test_same(got_lo, lo, rows * sizeof *lo, "minima of short rows, %s, %zu x %zu", backend->name, rows, n);
    test_free_guards();
}

static void test_short_rows(void **unused)
{
    (void)unused;
    FOR_EACH_KERNELS(b)
    {
        for (size_t n = 1; n <= NPUQ_SHORT; n++) {
            for (size_t rows = 1; rows <= NPUQ_SHORT_ROWS; rows++) {
                check_short_rows(b, n, rows);
            }
        }
    }
}

/* The row of runs ends where its memory ends. */
static void check_runs(const kernel_backend *backend, npuq_dtype x_dtype, npuq_dtype y_dtype, unsigned log2,
                       size_t runs)
{
    enum { MOST = 4096, MOST_RUNS = MOST >> NPUQ_LEAST_RUN };
    const npuq_type x = npuq_find_type(x_dtype)->type;
    const npuq_type y = npuq_find_type(y_dtype)->type;
    const size_t n = runs << log2;
    const size_t x_bytes = n * npuq_dtype_size(x_dtype);
    const size_t y_bytes = npuq_count_bytes(npuq_word_of(y), n);
    float largest[MOST_RUNS];
    float scales[MOST_RUNS];
    unsigned char *to = test_guard(y_bytes, true, 0);
    unsigned char *from = test_guard(x_bytes, true, 0);
    unsigned char expected[MOST];

    assert_true(n <= MOST);
    test_fill(from, x_dtype, n, test_one_in(2));
    if (test_one_in(4)) {
        test_fill(from + x_bytes / n * test_below(n), x_dtype, 1, false);
    }
    test_fill(scales, NPUQ_FLOAT32, runs, test_one_in(2));
    float *got_largest = guarded_floats(NULL, 0, whole_lanes(runs));
    const float *by = guarded_floats(scales, runs, whole_lanes(runs));
    npuq_block block = {
        .x = from, .y = expected, .rows = 1, .n = n, .flip = y == NPUQ_TYPE_INT8 && test_one_in(2) ? 0x80 : 0};

    npuq_run_kernel(&npuq_rows_ref, x)(&block, log2, largest);
    npuq_quantise_kernel(&npuq_rows_ref, NPUQ_MUL, y,
                         x)(&block, &(npuq_quant_params){scales, NULL, NULL, NULL, NPUQ_BY_RUN, log2, false});
    kernel_choose_hints(&block);
    block.y = to;
    npuq_run_kernel(backend->kernels, x)(&block, log2, got_largest);
    npuq_quantise_kernel(backend->kernels, NPUQ_MUL, y,
                         x)(&block, &(npuq_quant_params){by, NULL, NULL, NULL, NPUQ_BY_RUN, log2, false});
    backend->kernels->fence_stores();
    canonical(largest, runs);
    canonical(got_largest, runs);
    test_same(got_largest, largest, runs * sizeof *largest, "magnitudes, %s, %s, %zu runs of %d", backend->name,
              npuq_dtype_name(x_dtype), runs, 1 << log2);
    test_same(to, expected, y_bytes, "scaled runs, %s, %s to %s, %zu of %d", backend->name, npuq_dtype_name(x_dtype),
              npuq_dtype_name(y_dtype), runs, 1 << log2);
    test_free_guards();
}

static void test_runs(void **unused)
{
    static const npuq_dtype x[] = {NPUQ_FLOAT32, NPUQ_FLOAT16, NPUQ_BFLOAT16};
    static const npuq_dtype y[] = {NPUQ_INT8, NPUQ_QUINT4X2};

    (void)unused;
    FOR_EACH_KERNELS(b)
    {
        for (unsigned log2 = NPUQ_LEAST_RUN; log2 <= NPUQ_LONGEST_RUN; log2++) {
            for (size_t i = 0; i < 6 * 60; i++) {
                const size_t runs = i < 6 * 40 && i / 6 < 4096u >> log2 ? i / 6 + 1 : test_below(4096u >> log2) + 1;

                check_runs(b, x[i % 3], y[i / 3 % 2], log2, runs);
            }
        }
    }
}

static void test_spread(void **unused)
{
    enum { ROWS = 7, COLUMNS = 80 };

    (void)unused;
    FOR_EACH_KERNELS(b)
    {
        for (size_t n = 1; n <= COLUMNS; n++) {
            float values[ROWS];
            float expected[ROWS * COLUMNS];
            float *got = guarded_floats(NULL, 0, ROWS * n + NPUQ_LANES);

            test_fill(values, NPUQ_FLOAT32, ROWS, true);
            npuq_rows_ref.spread(values, ROWS, n, expected);
            b->kernels->spread(values, ROWS, n, got);
            test_same(got, expected, ROWS * n * sizeof *got, "spread, %s, n = %zu", b->name, n);
            test_free_guards();
        }
    }
}

/* Rows whose parameters are made together. */
enum { RANGES = 48 };

static void check_parameters(const float *hi, const float *lo, size_t n)
{
    const float *at_hi = guarded_floats(hi, n, whole_lanes(n));
    const float *at_lo = guarded_floats(lo, n, whole_lanes(n));

    FOR_EACH_KERNELS(b)
    {
        for (int form = NPUQ_ASYMMETRIC; form <= NPUQ_SYMMETRIC_BLOCK; form++) {
            for (int i4 = 0; i4 < 2; i4++) {
                const npuq_type y = i4 ? NPUQ_TYPE_QUINT4X2 : NPUQ_TYPE_INT8;
                float expected[3][RANGES];
                float got[3][RANGES];

                npuq_rows_ref.parameters((npuq_dynamic_form)form, y, hi, lo, n, expected[0], expected[1], expected[2]);
                b->kernels->parameters((npuq_dynamic_form)form, y, at_hi, at_lo, n, got[0], got[1], got[2]);
                for (int i = 0; i < 3; i++) {
                    canonical(expected[i], n);
                    canonical(got[i], n);
                    test_same(got[i], expected[i], n * sizeof *got[i], "%s, form %d, int%d, ranges from %a to %a: %s",
                              b->name, form, i4 ? 4 : 8, (double)lo[0], (double)hi[0],
                              i == 0   ? "scale"
                              : i == 1 ? "offset"
                                       : "back");
                }
            }
        }
    }
    test_free_guards();
}

/* All pairs of chosen values, which a caller may give, then random pairs of all magnitudes. */
static void test_parameters(void **unused)
{
    static const uint32_t chosen[] = {0x00000000u, 0x80000000u, 0x00000001u, 0x80000001u, 0x007FFFFFu, 0x807FFFFFu,
                                      0x00800000u, 0x80800000u, 0x2B8CBCCBu, 0x2B8CBCCCu, 0x2B8CBCCDu, 0xAB8CBCCCu,
                                      0x2F8C4D03u, 0x2F8C4D04u, 0x2F8C4D05u, 0x3F800000u, 0xBF800000u, 0x42FE0000u,
                                      0xC2FE0000u, 0x437F0000u, 0x7EFFFFFFu, 0xFEFFFFFFu, 0x7F7FFFFFu, 0xFF7FFFFFu,
                                      0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xFFC00001u, 0x7F800001u, 0xFFBFFFFFu};
    const size_t count = sizeof chosen / sizeof chosen[0];
    float hi[RANGES] = {npuq_ref_from_bits(0x7FC00000u)};
    float lo[RANGES] = {npuq_ref_from_bits(0x7FC00000u)};
    size_t n = 1;

    (void)unused;
    for (size_t i = 0; i < count * count + 20000; i++) {
        const float a = i < count * count ? npuq_ref_from_bits(chosen[i % count]) : test_float(true);
        const float b = i < count * count ? npuq_ref_from_bits(chosen[i / count]) : test_float(true);

        hi[n] = a;
        lo[n] = b;
        n++;
        if (n == RANGES || test_one_in(40)) {
            check_parameters(hi, lo, n);
            n = test_below(2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),      cmocka_unit_test(test_halves),
        cmocka_unit_test(test_range_orders), cmocka_unit_test(test_extreme_scales),
        cmocka_unit_test(test_pack),         cmocka_unit_test(test_unpack),
        cmocka_unit_test(test_widen),        cmocka_unit_test(test_short_rows),
        cmocka_unit_test(test_runs),         cmocka_unit_test(test_spread),
        cmocka_unit_test(test_parameters),   cmocka_unit_test(test_uncertain_quotients),
        cmocka_unit_test(test_last_scale),   cmocka_unit_test(test_absent_offset),
    };

    test_describe_faults(describe);
    test_seed();
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
