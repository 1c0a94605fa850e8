/* SPDX-License-Identifier: BSD-3-Clause */
/* All 2^32 patterns of 32 bits through every backend here, and through the reference's casts, in blocks of 65,536, on
 * two threads.
 *
 * usage: test_exhaustive kernels | quotients | integers | packs | casts
 * NPUQ_TEST_BLOCKS=N takes N of the 65,536 blocks, evenly spread, and fewer scales of quotients: for emulators. */
#include "kernels.h"
#include "support.h"

#include "ref/npuq_ref_element.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

enum { BLOCK = 65536, BLOCKS = 65536, THREADS = 2 };

static size_t blocks; /* to take */

/* A difference that was found, in words; "" if there is none. */
typedef struct block_difference {
    char text[192];
} block_difference;

/* The work on all patterns. pass is the caller's; each thread has its own buffers. */
typedef struct block_work {
    const void *pass;
    size_t buffers_size;
    void (*prepare)(const void *pass, void *buffers); /* once for each thread, with buffers of zeros */
    /* with every block: the patterns block << 16 and the 65,535 that follow */
    void (*check)(const void *pass, uint32_t block, void *buffers, block_difference *difference);
} block_work;

typedef struct block_run {
    const block_work *work;
    block_difference differences[THREADS];
} block_run;

static void take_blocks(void *argument, size_t begin, size_t end)
{
    block_run *run = argument;
    block_difference *difference = &run->differences[begin > 0];
    void *buffers = calloc(1, run->work->buffers_size);

    if (!buffers) {
        (void)snprintf(difference->text, sizeof difference->text, "out of memory");
        return;
    }
    run->work->prepare(run->work->pass, buffers);
    for (size_t i = begin; i < end && !difference->text[0]; i++) {
        run->work->check(run->work->pass, (uint32_t)(i * (BLOCKS / blocks)), buffers, difference);
    }
    free(buffers);
}

/* Takes the blocks, evenly spread. Fails with the first difference of a thread. */
static void blocks_each(const block_work *work)
{
    size_t ends[TEST_THREADS + 1] = {0, 500, 1000, 1000, 1000};
    block_run run = {.work = work};

    test_run_parts(ends, blocks, take_blocks, &run);
    for (size_t i = 0; i < THREADS; i++) {
        if (run.differences[i].text[0]) {
            fail_msg("differs: %s", run.differences[i].text);
        }
    }
}

/* ---- kernels: all float32 through every f32 row kernel, with some scales and offsets ----------------------------- */

/* Products and quotients fall on and near ties, overflow, vanish, and pass through NaN. */
static const struct {
    float scale;
    float offset;
} parameters[] = {{1.0f, 0.0f}, {0.0999755859375f, -1.1658f}, {-3.0f, 0.5f}, {1.17549435e-38f, 100.0f}};

enum { PARAMETERS = sizeof parameters / sizeof parameters[0] };

typedef struct buffers {
    uint32_t x[BLOCK];
    uint32_t expected[BLOCK];
    uint32_t got[BLOCK];
    float scale[BLOCK];
    float offset[BLOCK];
} buffers;

typedef struct pass {
    kernel_id id;
    size_t which;
} pass;

static void run(const npuq_row_kernels *kernels, kernel_id id, buffers *b, void *y, float range[2])
{
    kernel_call call =
        kernel_make_call(id, (npuq_block){.x = b->x, .y = y, .rows = 1, .n = BLOCK}, b->scale, b->offset);

    if (!kernel_has_y(id)) {
        call.params.range.hi = &range[0];
        call.params.range.lo = &range[1];
    }
    kernel_run(kernels, &call);
}

/* Runs a backend's kernel and compares the result with b->expected and this range. */
static void compare(const kernel_backend *backend, kernel_id id, size_t which, buffers *b,
                    const float expected_range[2], block_difference *difference)
{
    float range[] = {-INFINITY, INFINITY};

    run(backend->kernels, id, b, b->got, range);
    if (memcmp(b->got, b->expected, kernel_y_bytes(id, BLOCK)) != 0 ||
        memcmp(range, expected_range, sizeof range) != 0) {
        (void)snprintf(difference->text, sizeof difference->text, "%s, %s, x in %08x..%08x, scale %g, offset %g",
                       backend->name, kernel_name(id), b->x[0], b->x[BLOCK - 1], (double)parameters[which].scale,
                       (double)parameters[which].offset);
    }
}

static void prepare(const void *argument, void *memory)
{
    const pass *p = argument;
    buffers *b = memory;

    for (size_t i = 0; i < BLOCK; i++) {
        b->scale[i] = parameters[p->which].scale;
        b->offset[i] = parameters[p->which].offset;
    }
}

/* The slow backend generic has one kernel for all types and operations. The first parameters take all floats by row
 * through each of its paths. For other parameters, every fourth block is enough. */
static bool is_due(const kernel_backend *backend, kernel_id id, size_t which, uint32_t block)
{
    const bool first = which == 0 && id.kind != KERNEL_BY_COLUMN && id.op == NPUQ_MUL;
    return first || block % 4 == 0 || strcmp(backend->name, "generic") != 0;
}

static void check_block(const void *argument, uint32_t block, void *memory, block_difference *difference)
{
    const pass *p = argument;
    buffers *b = memory;
    float range[] = {-INFINITY, INFINITY};

    for (uint32_t i = 0; i < BLOCK; i++) {
        b->x[i] = block << 16 | i;
    }
    run(&npuq_rows_ref, p->id, b, b->expected, range);
    FOR_EACH_KERNELS(k)
    {
        kernel_id id = p->id;

        if (is_due(k, id, p->which, block)) {
            compare(k, id, p->which, b, range, difference);
        }
        if (id.kind == KERNEL_BY_ROW) { /* all parameters are equal: the other kernel gives the same result */
            id.kind = KERNEL_BY_COLUMN;
            if (is_due(k, id, p->which, block)) {
                compare(k, id, p->which, b, range, difference);
            }
        }
    }
}

/* The number of parameters to try. int8 and int32, one for each operation, and ranges with smooth scales try all: these
 * show the arithmetic. The other integer types differ only after the arithmetic, where the first parameters show every
 * float. Products that become integers leave out the last: nearly all vanish against the offset, and half are
 * subnormal, which takes a CPU up to a hundred cycles each. */
static size_t parameters_for(kernel_id id)
{
    switch (id.kind) {
    case KERNEL_RANGES: return 1;
    case KERNEL_SMOOTHED_RANGES: return PARAMETERS;
    case KERNEL_SMOOTHED: /* has no int32 */
    case KERNEL_BY_ROW:
        return id.op == NPUQ_DIV        ? (id.y == NPUQ_TYPE_INT32 ? PARAMETERS : 2)
               : id.y == NPUQ_TYPE_INT8 ? PARAMETERS - 1
                                        : 2;
    default: return 0; /* KERNEL_BY_COLUMN goes with KERNEL_BY_ROW; others do other arithmetic, or none */
    }
}

static void check_kernel(void *context, kernel_id id)
{
    (void)context;
    const size_t count = id.x == NPUQ_TYPE_FLOAT32 ? parameters_for(id) : 0;

    for (size_t which = 0; which < count; which++) {
        const pass p = {id, which};
        const block_work work = {&p, sizeof(buffers), prepare, check_block};

        blocks_each(&work);
    }
    if (count > 0) {
        print_message("%s\n", kernel_name(id));
    }
}

static void test_all_floats(void **unused)
{
    (void)unused;
    kernel_each(check_kernel, NULL);
}

/* ---- quotients: all significands of x divided by many scales ----------------------------------------------------- */

/* Significands of 1, 2^k / 3 and others next to powers of 2 and to each other; then random ones. */
static uint32_t pick_significand(size_t i)
{
    static const uint32_t chosen[] = {0x000000, 0x000001, 0x000002, 0x7FFFFF, 0x7FFFFE, 0x2AAAAA, 0x2AAAAB, 0x555555,
                                      0x3504F3, 0x3504F4, 0x400000, 0x400001, 0x3FFFFF, 0x4CCCCD, 0x199999, 0x7FF800};
    const size_t count = sizeof chosen / sizeof chosen[0];

    return i < count ? chosen[i] : (uint32_t)test_below(1u << 23);
}

/* x / scale lies in (2^23, 2^25), where each float32 is an integer: int32 shows every bit. */
static void check_quotients(buffers *b, float scale, uint32_t exponent_of_x, bool by_column)
{
    enum { ROWS = 4, COLUMNS = BLOCK / ROWS };
    const kernel_id id = {by_column ? KERNEL_BY_COLUMN : KERNEL_BY_ROW, NPUQ_TYPE_FLOAT32, NPUQ_TYPE_INT32, NPUQ_DIV};
    const npuq_block block = {.x = b->x, .x_stride = COLUMNS * 4, .y_stride = COLUMNS * 4, .rows = ROWS, .n = COLUMNS};
    kernel_call call = kernel_make_call(id, block, b->scale, b->offset);

    for (size_t i = 0; i < BLOCK; i++) {
        b->scale[i] = scale;
    }
    for (uint32_t first = 0; first < 1u << 23; first += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            b->x[i] = exponent_of_x << 23 | (first + i);
        }
        call.block.y = b->expected;
        kernel_run(&npuq_rows_ref, &call);
        FOR_EACH_KERNELS(k)
        {
            call.block.y = b->got;
            kernel_run(k->kernels, &call);
            test_same(b->got, b->expected, sizeof b->got, "%s, %s, x from %08x, scale %a", k->name, kernel_name(id),
                      b->x[0], (double)scale);
        }
    }
}

static void test_all_quotients(void **unused)
{
    enum { SCALES = 128 };
    /* The first and the last exponents of scales with an inverse, some others, and the middle. */
    static const uint32_t exponents[] = {63, 127, 190, 100, 62, 191, 150, 20};
    const size_t scales = blocks < BLOCKS / SCALES ? 1 : blocks / (BLOCKS / SCALES);
    buffers *b = calloc(1, sizeof *b);

    (void)unused;
    assert_non_null(b);
    for (size_t i = 0; i < scales; i++) {
        const uint32_t exponent = exponents[i % (sizeof exponents / sizeof exponents[0])];
        const float scale =
            npuq_ref_from_bits((test_one_in(2) ? 0x80000000u : 0) | exponent << 23 | pick_significand(i));

        check_quotients(b, scale, exponent + 24, i % 2 == 1);
        check_quotients(b, scale, exponent + 24, i % 2 == 0);
    }
    print_message("%zu scales\n", scales);
    free(b);
}

/* ---- integers: every pattern as an int32 x, or as a float32 scale ------------------------------------------------ */

/* A pass over all patterns: each is an int32 x, or the float32 scale of an x that is 1. */
typedef struct integer_pass {
    const char *name;
    npuq_type y;
    bool patterns_are_scales;
    float scale;
    float row_scale;  /* 0: none */
    float bias;       /* 0: none */
    int32_t x_bias;   /* 0: none */
    int32_t y_offset; /* 0: none */
} integer_pass;

/* The products fall on and near ties, round twice, overflow, vanish, and are subnormal. */
static const integer_pass passes[] = {
    {"every float32, stored as float32", NPUQ_TYPE_FLOAT32, true, 0, 0, 0, 0, 0},
    {"every float32, stored as float16", NPUQ_TYPE_FLOAT16, true, 0, 0, 0, 0, 0},
    {"every float32, stored as bfloat16", NPUQ_TYPE_BFLOAT16, true, 0, 0, 0, 0, 0},
    {"every int32, dequantised by 1", NPUQ_TYPE_BFLOAT16, false, 1.0f, 0, 0, 0, 0},
    {"every int32, dequantised by .1, -.003, + 7.7", NPUQ_TYPE_FLOAT32, false, 0.1f, -0.003f, 7.7f, 0, 0},
    {"every int32 + 123456789, dequantised by 1e-5, 3", NPUQ_TYPE_FLOAT16, false, 1e-5f, 3.0f, 0, 123456789, 0},
    {"every int32, requantised by 2^-8, - 3", NPUQ_TYPE_INT8, false, 0.00390625f, 0, 0, 0, -3},
    {"every int32 - 1000000007, requantised by 6e-8, + 200", NPUQ_TYPE_INT8, false, 6e-8f, 0, 0, -1000000007, 200},
    {"every int32, requantised by -1, - 256", NPUQ_TYPE_INT8, false, -1.0f, 0, 0, 0, -256},
    {"every int32, requantised by 1e-4", NPUQ_TYPE_INT8, false, 1e-4f, 0, 0, 0, 0},
};

typedef struct integer_buffers {
    uint32_t patterns[BLOCK];
    int32_t ones[BLOCK];
    float bias[BLOCK];
    int32_t x_bias[BLOCK];
    uint32_t expected[BLOCK];
    uint32_t got[BLOCK];
} integer_buffers;

static void prepare_integers(const void *argument, void *memory)
{
    const integer_pass *s = argument;
    integer_buffers *b = memory;

    for (size_t i = 0; i < BLOCK; i++) {
        b->ones[i] = 1;
        b->bias[i] = s->bias;
        b->x_bias[i] = s->x_bias;
    }
}

static void check_integers(const void *argument, uint32_t number, void *memory, block_difference *difference)
{
    const integer_pass *s = argument;
    integer_buffers *b = memory;
    float row_scale = s->row_scale;
    npuq_dequant_params params = {.scale = &s->scale};
    npuq_block block = {.x = b->patterns, .y = b->expected, .rows = 1, .n = BLOCK};

    for (uint32_t i = 0; i < BLOCK; i++) {
        b->patterns[i] = number << 16 | i;
    }
    if (s->patterns_are_scales) {
        block.x = b->ones;
        params.scale = (const float *)(const void *)b->patterns;
        params.by_column = true;
    } else if (s->y_offset != 0) {
        params.y_offset = &s->y_offset;
    }
    params.row_scale = s->row_scale != 0 ? &row_scale : NULL;
    params.bias = s->bias != 0 ? b->bias : NULL;
    params.x_bias = s->x_bias != 0 ? b->x_bias : NULL;
    npuq_dequantise_kernel(&npuq_rows_ref, s->y, NPUQ_TYPE_INT32)(&block, &params);
    FOR_EACH_KERNELS(k)
    {
        block.y = b->got;
        npuq_dequantise_kernel(k->kernels, s->y, NPUQ_TYPE_INT32)(&block, &params);
        if (memcmp(b->got, b->expected, npuq_count_bytes(npuq_word_of(s->y), BLOCK)) != 0) {
            (void)snprintf(difference->text, sizeof difference->text, "%s, %s, patterns %08x..%08x", k->name, s->name,
                           b->patterns[0], b->patterns[BLOCK - 1]);
        }
    }
}

static void test_all_patterns(void **unused)
{
    (void)unused;
    for (size_t s = 0; s < COUNT(passes); s++) {
        const block_work work = {&passes[s], sizeof(integer_buffers), prepare_integers, check_integers};

        blocks_each(&work);
        print_message("%s\n", passes[s].name);
    }
}

/* ---- packs: trans_quant_param over all scales in both modes, and over all offsets, by integer rules of the test's own
 */

static uint32_t expected_scale(uint32_t bits, npuq_round_mode mode)
{
    const uint32_t sign = bits & 0x80000000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    const uint32_t rest = magnitude % 8192;
    uint32_t steps = magnitude / 8192; /* what 19 bits can say */

    if (mode == NPUQ_ROUND_NEAREST && magnitude < 0x00800000u) {
        return sign;
    }
    if (mode == NPUQ_ROUND_NEAREST && magnitude < 0x7F800000u && (rest > 4096 || (rest == 4096 && steps % 2 == 1))) {
        steps++;
    }
    return sign + steps * 8192;
}

static uint64_t expected_offset(float offset)
{
    const double rounded = nearbyint((double)offset);
    const int64_t integer = isnan(offset) ? 0 : (int64_t)(rounded < -256 ? -256 : rounded > 255 ? 255 : rounded);
    return (uint64_t)(integer < 0 ? integer + 512 : integer);
}

typedef enum sweep { TRUNCATE, NEAREST, OFFSETS, SWEEPS } sweep;

typedef struct pack_buffers {
    uint32_t in[BLOCK];
    uint64_t out[BLOCK];
} pack_buffers;

static void prepare_nothing(const void *argument, void *memory)
{
    (void)argument, (void)memory;
}

static void check_packs(const void *argument, uint32_t block, void *memory, block_difference *difference)
{
    const sweep what = *(const sweep *)argument;
    const npuq_round_mode mode = what == NEAREST ? NPUQ_ROUND_NEAREST : NPUQ_ROUND_TRUNCATE;
    const float one = 1.0f;
    pack_buffers *b = memory;
    const npuq_tensor swept = npuq_vector(b->in, NPUQ_FLOAT32, BLOCK);
    const npuq_tensor fixed = npuq_vector(&one, NPUQ_FLOAT32, 1);
    const npuq_tensor y = npuq_vector(b->out, NPUQ_UINT64, BLOCK);

    for (uint32_t i = 0; i < BLOCK; i++) {
        b->in[i] = block << 16 | i;
    }
    bool is_right = (what == OFFSETS ? npuq_trans_quant_param(&fixed, &swept, mode, &y)
                                     : npuq_trans_quant_param(&swept, NULL, mode, &y)) == NPUQ_OK;
    for (uint32_t i = 0; i < BLOCK; i++) {
        const uint64_t expected = what == OFFSETS ? expected_offset(npuq_ref_from_bits(b->in[i])) << 37 | 0x3F800000u
                                                  : expected_scale(b->in[i], mode);

        is_right = is_right && b->out[i] == (expected | (uint64_t)1 << 46);
    }
    if (!is_right) {
        (void)snprintf(difference->text, sizeof difference->text, "trans_quant_param, %s, sweep %d, from %08x",
                       npuq_backend_name(npuq_active_backend()), (int)what, b->in[0]);
    }
}

static void test_all_packs(void **unused)
{
    (void)unused;
    for (sweep what = TRUNCATE; what < SWEEPS; what++) {
        const block_work work = {&what, sizeof(pack_buffers), prepare_nothing, check_packs};

        FOR_EACH_BACKEND()
        {
            blocks_each(&work);
        }
    }
}

/* ---- casts: all float32 by the reference to 8 and 4 bits, and by the C library's arithmetic of double -------------
 */

typedef struct cast {
    const char *name;
    npuq_ref_dtype dtype;
    npuq_ref_rounding rounding;
    int fraction; /* bits */
    int least;    /* exponent */
    double largest;
} cast;

static const cast casts[] = {
    {"e5m2", NPUQ_REF_FLOAT8_E5M2, NPUQ_REF_RINT, 2, -14, 57344},
    {"e4m3fn", NPUQ_REF_FLOAT8_E4M3FN, NPUQ_REF_RINT, 3, -6, 448},
    {"hifloat8", NPUQ_REF_HIFLOAT8, NPUQ_REF_ROUND, 0, -22, 32768},
    {"e2m1, rint", NPUQ_REF_FLOAT4_E2M1, NPUQ_REF_RINT, 1, 0, 6},
    {"e2m1, round", NPUQ_REF_FLOAT4_E2M1, NPUQ_REF_ROUND, 1, 0, 6},
    {"e2m1, floor", NPUQ_REF_FLOAT4_E2M1, NPUQ_REF_FLOOR, 1, 0, 6},
    {"e1m2, rint", NPUQ_REF_FLOAT4_E1M2, NPUQ_REF_RINT, 2, 0, 1.75},
    {"e1m2, round", NPUQ_REF_FLOAT4_E1M2, NPUQ_REF_ROUND, 2, 0, 1.75},
    {"e1m2, floor", NPUQ_REF_FLOAT4_E1M2, NPUQ_REF_FLOOR, 2, 0, 1.75},
};

static double round_as(double t, npuq_ref_rounding rounding)
{
    return rounding == NPUQ_REF_RINT ? rint(t) : rounding == NPUQ_REF_ROUND ? round(t) : floor(t);
}

/* The values of a block have one exponent, so what they are rounded to has one step. */
static void check_casts(const void *argument, uint32_t block, void *memory, block_difference *difference)
{
    const cast *c = argument;
    const int of_block = ilogb((double)npuq_ref_from_bits(block << 16));
    const int most = ilogb(c->largest);
    const int exponent = of_block < c->least ? c->least : of_block > most ? most : of_block;
    const int size = abs(exponent);
    const int of_hifloat8 = size <= 3 ? 3 : size <= 7 ? 2 : size <= 15 ? 1 : 0;
    const double step = ldexp(1.0, exponent - (c->dtype == NPUQ_REF_HIFLOAT8 ? of_hifloat8 : c->fraction));

    (void)memory;
    for (uint32_t i = 0; i < BLOCK; i++) {
        const float t = npuq_ref_from_bits(block << 16 | i);
        const double rounded =
            round_as((double)t / step, c->rounding) * step + (c->dtype == NPUQ_REF_HIFLOAT8 ? 0.0 : -0.0);
        const double expected = isnan(t)                ? 0.0
                                : rounded > c->largest  ? c->largest
                                : rounded < -c->largest ? -c->largest
                                                        : rounded;
        const uint8_t codes[4] = {c->dtype == NPUQ_REF_HIFLOAT8 ? npuq_ref_to_hifloat8(t)
                                                                : npuq_ref_to_small_float(c->dtype, t, c->rounding)};
        const float got = npuq_ref_load(codes, c->dtype, 0); /* there is room for any type */

        if (npuq_ref_to_bits(got) != npuq_ref_to_bits((float)expected)) {
            (void)snprintf(difference->text, sizeof difference->text, "%s of %08x: %02X, which is %a, not %a", c->name,
                           npuq_ref_to_bits(t), codes[0], (double)got, expected);
            return;
        }
    }
}

static void test_all_casts(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(casts); i++) {
        const block_work work = {&casts[i], 1, prepare_nothing, check_casts};

        blocks_each(&work);
        print_message("%s\n", casts[i].name);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        struct CMUnitTest test[1];
    } groups[] = {
        {"kernels", {cmocka_unit_test(test_all_floats)}},    {"quotients", {cmocka_unit_test(test_all_quotients)}},
        {"integers", {cmocka_unit_test(test_all_patterns)}}, {"packs", {cmocka_unit_test(test_all_packs)}},
        {"casts", {cmocka_unit_test(test_all_casts)}},
    };
    const char *given = getenv("NPUQ_TEST_BLOCKS");

    test_seed();
    blocks = given ? strtoull(given, NULL, 0) : BLOCKS;
    if (argc != 2 || blocks < 1 || blocks > BLOCKS) {
        return 1;
    }
    if (!kernel_backends()->name && strcmp(argv[1], "packs") != 0 && strcmp(argv[1], "casts") != 0) {
        (void)printf("SKIPPED: no backend but ref here\n");
        return 77;
    }
    (void)printf("# %zu of %d blocks\n", blocks, BLOCKS);
    for (size_t i = 0; i < COUNT(groups); i++) {
        if (strcmp(argv[1], groups[i].name) == 0) {
            return cmocka_run_group_tests_name(groups[i].name, groups[i].test, NULL, NULL);
        }
    }
    return 1;
}
