/* SPDX-License-Identifier: BSD-3-Clause */
/* The row kernels with integer inputs, of every backend, against the reference: all lengths to 257 and some long ones,
 * all misalignments, several rows, every combination of optional arguments. Guard pages surround the data. Exhaustive:
 * every int8 and int4 times every bfloat16 scale. */
#include "kernels.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 5, CANARY = 0xA5, PAD = 64 };

typedef struct integer_kernel {
    npuq_type x;
    npuq_type y;
} integer_kernel;

/* The running kernel, for the report of a fault. */
static struct {
    const char *backend;
    integer_kernel k;
    size_t n;
    size_t rows;
} now;

static void describe(char *line, size_t size, const char *what)
{
    (void)snprintf(line, size, "%s: %s to %s, %s, n = %zu, %zu rows", what, kernel_types[now.k.x].name,
                   kernel_types[now.k.y].name, now.backend, now.n, now.rows);
}

static float scale_of(bool ordinary)
{
    return ordinary ? (test_one_in(4) ? -1.0f : 1.0f) * (float)test_between(1, 4000) / 65536.0f : test_float(false);
}

static float *floats(size_t n, bool ordinary)
{
    float *guarded = test_guard(n * sizeof *guarded, true, 0);

    for (size_t i = 0; i < n; i++) {
        guarded[i] = scale_of(ordinary);
    }
    return guarded;
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

static void check(const kernel_backend *backend, integer_kernel k, size_t n, size_t rows, size_t gap)
{
    const bool ordinary = !test_one_in(3);
    const size_t step = test_below(2);
    const size_t x_row = npuq_count_bytes(npuq_word_of(k.x), n);
    const size_t y_row = npuq_count_bytes(npuq_word_of(k.y), n);
    const size_t x_align = npuq_word_of(k.x).size;
    const size_t y_align = npuq_word_of(k.y).size;
    const size_t x_step = x_row + test_below(3) * x_align;
    const bool in_place = k.x == NPUQ_TYPE_INT32 && k.y == NPUQ_TYPE_FLOAT32 && test_one_in(3);
    const size_t y_step = in_place ? x_step : y_row + test_below(3) * y_align;
    const size_t x_span = (rows - 1) * x_step + x_row;
    const size_t y_span = (rows - 1) * y_step + y_row;
    const bool from_int32 = k.x == NPUQ_TYPE_INT32;
    const size_t params = step ? n : 1;
    unsigned char *expected = test_allocate(y_span + 2 * PAD);
    char line[192];

    now.backend = backend->name;
    now.k = k;
    now.n = n;
    now.rows = rows;

    unsigned char *x = test_guard(x_span, test_one_in(2), gap * x_align % 64);
    unsigned char *y = test_guard(y_span + 2 * PAD, true, gap * y_align % 64);
    float *scale = floats(params, ordinary);
    float *offset = floats(n, ordinary);
    const float *bias = floats(n, ordinary);
    const float *row_scale = floats(rows, ordinary);
    int32_t *x_bias = test_guard(n * sizeof *x_bias, true, 0);
    int32_t *y_offset = test_guard(params * sizeof *y_offset, true, 0);
    fill_ints(x_bias, n);
    for (size_t i = 0; i < params; i++) {
        y_offset[i] = (int32_t)test_between(-256, 255);
    }
    for (size_t r = 0; r < rows; r++) {
        if (from_int32) {
            fill_ints(x + r * x_step, n);
        } else {
            for (size_t i = 0; i < x_row; i++) {
                x[r * x_step + i] = (unsigned char)test_random();
            }
        }
    }
    const bool to_int8 = k.y == NPUQ_TYPE_INT8;
    const bool as_words = backend->kernels->takes_any_columns && from_int32 && step &&
                          (to_int8 || k.y == NPUQ_TYPE_FLOAT16) && test_one_in(2);
    const bool of_dequant = from_int32 && !to_int8 && !as_words;
    const size_t row_scales = of_dequant ? test_below(3) : 0; /* none, for each row, by column */
    uint64_t *words = test_guard(params * sizeof *words, true, 0);
    if (as_words) {
        npuq_rows_ref.pack((uint32_t *)(void *)scale, offset, words, n, NPUQ_ROUND_TRUNCATE);
        npuq_rows_ref.unpack(words, scale, y_offset, n);
    }
    npuq_dequant_params p = {
        .scale = scale,
        .offset = !from_int32 && test_one_in(2) ? offset : NULL,
        .x_bias = from_int32 && test_one_in(2) ? x_bias : NULL,
        .row_scale = row_scales == 1 ? row_scale : NULL,
        .row_scales = row_scales == 2 ? offset : NULL,
        .bias = of_dequant && test_one_in(2) ? bias : NULL,
        .y_offset = to_int8 && test_one_in(2) ? y_offset : NULL,
        .by_column = step,
    };

    memset(y, CANARY, y_span + 2 * PAD);
    memset(expected, CANARY, y_span + 2 * PAD);
    npuq_block block = {x, expected + PAD, (ptrdiff_t)x_step, (ptrdiff_t)y_step, rows, n, 0, {.prefetch_bytes = 0}, 0};

    kernel_choose_hints(&block);
    npuq_dequantise_kernel(&npuq_rows_ref, k.y, k.x)(&block, &p);
    /* between guard bytes, or with its end against the guard page when gap is 0 */
    unsigned char *target = y + PAD + (test_one_in(2) ? PAD : 0);
    block.y = target;
    for (size_t r = 0; r < rows && in_place; r++) {
        memcpy(target + r * y_step, x + r * x_step, x_row);
        block.x = target;
    }
    p.words = as_words ? words : NULL;
    npuq_dequantise_kernel(backend->kernels, k.y, k.x)(&block, &p);

    describe(line, sizeof line, "differs");
    test_same(target, expected + PAD, y_span, "%s", line);
    for (unsigned char *at = y; at < y + y_span + 2 * PAD; at++) {
        if ((at < target || at >= target + y_span) && *at != CANARY) {
            fail_msg("overwrite %s: %s", at < target ? "left" : "right", line);
        }
    }

    test_free_guards();
    free(expected);
}

/* Calls visit for each kernel of each backend but ref; skips the test without another backend. */
static void for_each_kernel(void (*visit)(const kernel_backend *backend, integer_kernel k))
{
    FOR_EACH_KERNELS(b)
    {
        for (npuq_type x = 0; x < NPUQ_ROW_TYPES; x++) {
            for (npuq_type y = 0; y < NPUQ_ROW_TYPES; y++) {
                if (npuq_index_of_kernels.dequantise[y][x]) {
                    visit(b, (integer_kernel){x, y});
                }
            }
        }
        print_message("%s is equal to ref\n", b->name);
    }
    if (!kernel_backends()->name) {
        print_message("no backend but ref here\n");
        skip();
    }
}

static void check_lengths(const kernel_backend *backend, integer_kernel k)
{
    static const size_t longer[] = {504, 1000, 1024, 2049, 4096, 4999, 8999, 33000};
    const size_t multiple = npuq_count_elements_in(npuq_word_of(k.x));

    for (size_t n = 0; n <= 257; n++) {
        check(backend, k, n - n % multiple, 1 + test_below(MAX_ROWS), test_below(64));
    }
    for (size_t gap = 0; gap < 64; gap++) {
        const size_t n = 300 + test_below(100); /* long enough for non-temporal stores */
        check(backend, k, n - n % multiple, 2, gap);
    }
    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
        check(backend, k, longer[i] - longer[i] % multiple, 1 + test_below(MAX_ROWS), test_below(64));
    }
}

static void test_lengths(void **unused)
{
    (void)unused;
    for_each_kernel(check_lengths);
}

/* ---- every int8 and int4, with every bfloat16 scale, and with a scale of each magnitude for all columns ---- */

enum { SCALES = 65536, COLUMNS = 512 };

static void check_scales(const kernel_backend *backend, integer_kernel k)
{
    static float scale[SCALES];
    static float offset[SCALES];
    static uint32_t x[SCALES / 4];
    static uint32_t expected[SCALES];
    static _Alignas(64) uint32_t got[SCALES]; /* non-temporal stores begin with a line */
    const uint32_t values = k.x == NPUQ_TYPE_INT8 ? 256 : 16;
    const size_t bytes = npuq_count_bytes(npuq_word_of(k.y), SCALES);

    if (k.x == NPUQ_TYPE_INT32) {
        return;
    }
    for (uint32_t i = 0; i < SCALES; i++) {
        const uint32_t bits = i << 16;
        memcpy(&scale[i], &bits, sizeof bits);
        offset[i] = (float)test_between(-300, 300) / 4.0f;
    }
    for (uint32_t value = 0; value < values; value++) {
        memset(x, k.x == NPUQ_TYPE_INT8 ? (int)value : (int)(value * 0x11), sizeof x);
        for (int with_offset = 0; with_offset < 2; with_offset++) {
            const npuq_dequant_params p = {.scale = scale, .offset = with_offset ? offset : NULL, .by_column = true};
            npuq_block block = {.x = x, .y = expected, .rows = 1, .n = SCALES};

            npuq_dequantise_kernel(&npuq_rows_ref, k.y, k.x)(&block, &p);
            block.y = got;
            for (int from_memory = 0; from_memory < 2; from_memory++) { /* the other loop has non-temporal stores */
                block.hints = (npuq_hints){.from_memory = from_memory, .read_streams = 1};
                npuq_dequantise_kernel(backend->kernels, k.y, k.x)(&block, &p);
                test_same(got, expected, bytes, "%s, %s to %s, x = %u%s", backend->name, kernel_types[k.x].name,
                          kernel_types[k.y].name, (unsigned)value, from_memory ? ", from memory" : "");
                memset(got, CANARY, bytes);
            }
        }
    }
    for (unsigned i = 0; i < COLUMNS; i++) {
        ((uint8_t *)x)[i] = (uint8_t)i;
    }
    for (int exponent = -149; exponent < 128; exponent++) {
        const float one = ldexpf(exponent < 0 ? -1.0f : 1.0f, exponent);
        const npuq_dequant_params p = {.scale = &one};
        npuq_block block = {.x = x, .y = expected, .rows = 1, .n = COLUMNS};

        npuq_dequantise_kernel(&npuq_rows_ref, k.y, k.x)(&block, &p);
        block.y = got;
        npuq_dequantise_kernel(backend->kernels, k.y, k.x)(&block, &p);
        test_same(got, expected, npuq_count_bytes(npuq_word_of(k.y), COLUMNS), "%s, %s to %s, scale = %a",
                  backend->name, kernel_types[k.x].name, kernel_types[k.y].name, (double)one);
    }
}

static void test_scales(void **unused)
{
    (void)unused;
    for_each_kernel(check_scales);
}

/* ---- over the sums: what is not finite, at each place ---- */

static void check_places(const kernel_backend *backend, integer_kernel k)
{
    enum { N = 700, STEP = 704, ROWS = 2 };
    static const float others[] = {NAN, INFINITY, -INFINITY};
    static int32_t x[ROWS][STEP];
    static int32_t got[ROWS][STEP];
    static float expected[ROWS][STEP];
    static float scale[N];
    static float bias[N];

    if (k.x != NPUQ_TYPE_INT32 || k.y != NPUQ_TYPE_FLOAT32) {
        return;
    }
    for (size_t i = 0; i < N; i++) {
        scale[i] = 0.5f;
        bias[i] = -1.0f;
        x[0][i] = (int32_t)test_between(-1000, 1000);
        x[1][i] = (int32_t)test_between(0, 1) * INT32_MAX;
    }
    for (size_t i = 0; i < (size_t)N * 6; i++) {
        float *const place = i % 2 ? &scale[i / 6] : &bias[i / 6];
        const float ordinary = *place;
        const npuq_dequant_params p = {.scale = scale, .bias = bias, .by_column = true};
        npuq_block block = {
            .x = x, .y = expected, .x_stride = sizeof x[0], .y_stride = sizeof x[0], .rows = ROWS, .n = N};

        *place = others[i / 2 % 3];
        npuq_dequantise_kernel(&npuq_rows_ref, k.y, k.x)(&block, &p);
        memcpy(got, x, sizeof got);
        block.x = block.y = got;
        kernel_choose_hints(&block);
        npuq_dequantise_kernel(backend->kernels, k.y, k.x)(&block, &p);
        test_same(got, expected, sizeof got, "%s, in place, %a at %zu", backend->name, (double)*place, i / 6);
        *place = ordinary;
    }
}

static void test_places(void **unused)
{
    (void)unused;
    for_each_kernel(check_places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths), cmocka_unit_test(test_scales),
                                       cmocka_unit_test(test_places)};

    test_describe_faults(describe);
    test_seed();
    return cmocka_run_group_tests_name("kernels_integers", tests, NULL, NULL);
}
