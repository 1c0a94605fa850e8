/* SPDX-License-Identifier: BSD-3-Clause */
/* Large and unusual sizes: tensors of more than 2^32 elements, a million rows, rows of one element, eight dimensions of
 * extent 1. Large tensors map one small file again and again: x repeats, and so must y. */
#include "support.h"

#include "ref/npuq_ref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The period of x, and the number of periods: slightly more than 2^32 elements. */
enum { PERIOD = 1 << 22, PERIODS = 1026 };

/* `times` adjacent mappings of the same `size` bytes; size is a multiple of any page. */
typedef struct windows {
    char *memory;
    size_t size;
    size_t times;
} windows;

static windows make_windows(size_t size, size_t times)
{
    FILE *file = tmpfile();
    windows w = {.size = size, .times = times};

    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), (off_t)size), 0);
    w.memory = mmap(NULL, size * times, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(w.memory, MAP_FAILED);
    for (size_t i = 0; i < times; i++) {
        char *at = w.memory + i * size;
        assert_ptr_equal(mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(file), 0), at);
    }
    (void)fclose(file); /* the mappings keep the file */
    return w;
}

static void free_windows(windows *w)
{
    assert_int_equal(munmap(w->memory, w->size * w->times), 0);
}

static void skip_if_small(void)
{
    if (sizeof(size_t) < 8) {
        print_message("an address space of 32 bits: no tensor is that big\n");
        skip();
    }
}

typedef struct big {
    windows x;
    windows y;
    uint8_t *expected; /* of a period */
    size_t y_size;     /* bytes of a period */
} big;

/* The number of storage elements: a word holds eight values. */
static size_t stored(npuq_dtype type, size_t count)
{
    return type == NPUQ_QUINT4X2 ? count / 8 : count;
}

static big make_big(npuq_dtype x_type, npuq_dtype y_type)
{
    const size_t x_count = stored(x_type, PERIOD);
    const size_t y_size = stored(y_type, PERIOD) * npuq_dtype_size(y_type);
    big b = {make_windows(x_count * npuq_dtype_size(x_type), PERIODS), make_windows(y_size, PERIODS), calloc(1, y_size),
             y_size};

    assert_non_null(b.expected);
    test_fill(b.x.memory, x_type, x_count, true);
    memset(b.y.memory, 0x55, y_size);
    return b;
}

static void check_big(big *b, const char *what)
{
    test_same(b->y.memory, b->expected, b->y_size, "%s", what);
    free_windows(&b->x);
    free_windows(&b->y);
    free(b->expected);
}

static const int64_t elements = (int64_t)PERIOD * PERIODS;

static void test_big_quantize(void **unused)
{
    const size_t period = PERIOD;
    float scale = 3.7f;
    float zero_point = -1.5f;
    const npuq_tensor scales = npuq_vector(&scale, NPUQ_FLOAT32, 1);
    const npuq_tensor zero_points = npuq_vector(&zero_point, NPUQ_FLOAT32, 1);

    (void)unused;
    skip_if_small();
    for (int i = 0; i < 2; i++) {
        const npuq_dtype type = i == 0 ? NPUQ_INT8 : NPUQ_QUINT4X2;
        big b = make_big(NPUQ_FLOAT16, type);
        const npuq_tensor x = npuq_vector(b.x.memory, NPUQ_FLOAT16, elements);
        const npuq_tensor y = npuq_vector(b.y.memory, type, i == 0 ? elements : elements / 8);

        npuq_ref_quantize(b.x.memory, NPUQ_REF_FLOAT16, &period, 1, &scale, NPUQ_REF_FLOAT32, 1, &zero_point,
                          NPUQ_REF_FLOAT32, -1, false, b.expected, i == 0 ? NPUQ_REF_INT8 : NPUQ_REF_QUINT4X2);
        assert_int_equal(
            npuq_quantize(&x, &scales, &zero_points, -1, false, &y, i == 0 ? NULL : &test_shuffled_executor), NPUQ_OK);
        check_big(&b, "quantize");
    }
}

/* Rows of 2^20 columns, by channel; the last group begins beyond element 2^32. */
static void test_big_group_quant(void **unused)
{
    enum { H = 1 << 20, ROWS_OF_PERIOD = PERIOD / H };
    const int64_t shape[] = {(int64_t)PERIODS * ROWS_OF_PERIOD, H};
    const int64_t scale_shape[] = {2, H};
    int64_t ends[] = {shape[0] - ROWS_OF_PERIOD, shape[0]};
    const int64_t period_end = ROWS_OF_PERIOD;
    static uint16_t scale[2 * H];

    (void)unused;
    skip_if_small();
    big b = make_big(NPUQ_FLOAT16, NPUQ_INT8);
    test_fill(scale, NPUQ_BFLOAT16, H, true);
    memcpy(scale + H, scale, H * sizeof *scale); /* equal groups, so that y repeats */

    const npuq_tensor x = npuq_tensor_contiguous(b.x.memory, NPUQ_FLOAT16, 2, shape);
    const npuq_tensor y = npuq_tensor_contiguous(b.y.memory, NPUQ_INT8, 2, shape);
    const npuq_tensor scales = npuq_tensor_contiguous(scale, NPUQ_BFLOAT16, 2, scale_shape);
    const npuq_tensor group_index = npuq_vector(ends, NPUQ_INT64, 2);

    npuq_ref_group_quant(b.x.memory, NPUQ_REF_FLOAT16, ROWS_OF_PERIOD, H, scale, NPUQ_REF_BFLOAT16, 1, &period_end,
                         NULL, b.expected, NPUQ_REF_INT8);
    assert_int_equal(npuq_group_quant(&x, &scales, &group_index, NULL, &y, &test_shuffled_executor), NPUQ_OK);
    test_same(b.y.memory, b.expected, b.y_size, "group_quant");

    npuq_call prepared;
    memset(b.y.memory, 0x55, b.y_size);
    assert_int_equal(npuq_prepare_group_quant(&prepared, &x, &scales, &group_index, NULL, &y), NPUQ_OK);
    assert_true(npuq_call_units(&prepared) >= (size_t)elements / 4096);
    npuq_call_run(&prepared, 0, SIZE_MAX);
    check_big(&b, "group_quant, prepared");
}

/* The way back from words to elements, of one scale and of one for each of 2^20 columns. */
static void test_big_anti_quant(void **unused)
{
    enum { H = 1 << 20, ROWS_OF_PERIOD = PERIOD / H };
    const int64_t shape[] = {(int64_t)PERIODS * ROWS_OF_PERIOD, H};
    static uint16_t scale[H];

    (void)unused;
    skip_if_small();
    test_fill(scale, NPUQ_FLOAT16, H, true);
    for (int i = 0; i < 2; i++) {
        const npuq_dtype type = i == 0 ? NPUQ_INT8 : NPUQ_QUINT4X2;
        const size_t scales = i == 0 ? H : 1;
        const int64_t x_shape[] = {shape[0], (int64_t)stored(type, H)};
        big b = make_big(type, NPUQ_BFLOAT16);
        const npuq_tensor x = npuq_tensor_contiguous(b.x.memory, type, 2, x_shape);
        const npuq_tensor scale_view = npuq_vector(scale, NPUQ_FLOAT16, (int64_t)scales);
        const npuq_tensor y = npuq_tensor_contiguous(b.y.memory, NPUQ_BFLOAT16, 2, shape);

        npuq_ref_anti_quant(b.x.memory, i == 0 ? NPUQ_REF_INT8 : NPUQ_REF_QUINT4X2, ROWS_OF_PERIOD, H, scale,
                            NPUQ_REF_FLOAT16, scales, NULL, b.expected, NPUQ_REF_BFLOAT16);
        assert_int_equal(npuq_anti_quant(&x, &scale_view, NULL, &y, i == 0 ? NULL : &test_shuffled_executor), NPUQ_OK);
        check_big(&b, "anti_quant");
    }
}

/* Sums of 2^32 elements: with scales for each column and row, and in one row with one word. */
static void test_big_sums(void **unused)
{
    enum { H = 1 << 20, ROWS_OF_PERIOD = PERIOD / H };
    const int64_t shape[] = {(int64_t)PERIODS * ROWS_OF_PERIOD, H};
    static float scale[H];
    static float activation_scale[PERIODS * ROWS_OF_PERIOD];
    const uint64_t word = (uint64_t)1 << 46 | (uint64_t)77 << 37 | 0x37E00000; /* 2^-16 * 1.75, 77 */
    const npuq_tensor scale_view = npuq_vector(scale, NPUQ_FLOAT32, H);
    const npuq_tensor activation_view = npuq_vector(activation_scale, NPUQ_FLOAT32, shape[0]);
    const npuq_tensor word_view = npuq_vector(&word, NPUQ_UINT64, 1);

    (void)unused;
    skip_if_small();
    test_fill(scale, NPUQ_FLOAT32, H, true);
    test_fill(activation_scale, NPUQ_FLOAT32, ROWS_OF_PERIOD, true);
    for (int64_t r = ROWS_OF_PERIOD; r < shape[0]; r++) { /* so that y repeats */
        activation_scale[r] = activation_scale[r - ROWS_OF_PERIOD];
    }
    big b = make_big(NPUQ_INT32, NPUQ_FLOAT16);
    const npuq_tensor x = npuq_tensor_contiguous(b.x.memory, NPUQ_INT32, 2, shape);
    const npuq_tensor y = npuq_tensor_contiguous(b.y.memory, NPUQ_FLOAT16, 2, shape);

    npuq_ref_dequant((const int32_t *)b.x.memory, ROWS_OF_PERIOD, H, scale, NPUQ_REF_FLOAT32, H, activation_scale, NULL,
                     NPUQ_REF_FLOAT32, b.expected, NPUQ_REF_FLOAT16);
    assert_int_equal(npuq_dequant(&x, &scale_view, &activation_view, NULL, &y, &test_shuffled_executor), NPUQ_OK);
    check_big(&b, "dequant");

    b = make_big(NPUQ_INT32, NPUQ_INT8);
    const npuq_tensor row = npuq_vector(b.x.memory, NPUQ_INT32, elements);
    const npuq_tensor bytes = npuq_vector(b.y.memory, NPUQ_INT8, elements);

    npuq_ref_requant((const int32_t *)b.x.memory, 1, PERIOD, &word, 1, NULL, b.expected, NPUQ_REF_INT8);
    assert_int_equal(npuq_requant(&row, &word_view, NULL, &bytes, &test_shuffled_executor), NPUQ_OK);
    check_big(&b, "requant");
}

/* The whole tensor as one row, per tensor and per token; then in three steps. */
static void test_big_dynamic(void **unused)
{
    const int64_t shape[] = {1, elements};

    (void)unused;
    skip_if_small();
    for (int i = 0; i < 7; i++) {
        const npuq_quant_mode mode = i % 3 == 0 ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN;
        const bool in_steps = i >= 5;
        const bool symmetric = in_steps ? i == 6 : i >= 3;
        const npuq_executor *executor = i == 1 ? NULL : &test_shuffled_executor;
        big b = make_big(NPUQ_FLOAT16, NPUQ_INT8);
        float scale = 0.0f;
        float offset = 0.0f;
        float expected_scale;
        float expected_offset = 0.0f;
        float min;
        float max;
        const npuq_tensor x = npuq_tensor_contiguous(b.x.memory, NPUQ_FLOAT16, 2, shape);
        const npuq_tensor y = npuq_tensor_contiguous(b.y.memory, NPUQ_INT8, 2, shape);
        const npuq_tensor scales = npuq_vector(&scale, NPUQ_FLOAT32, 1);
        const npuq_tensor offsets = npuq_vector(&offset, NPUQ_FLOAT32, 1);
        const npuq_tensor mins = npuq_vector(&min, NPUQ_FLOAT32, 1);
        const npuq_tensor maxs = npuq_vector(&max, NPUQ_FLOAT32, 1);

        if (in_steps) {
            assert_int_equal(npuq_dynamic_quant_min_max(&x, NULL, NULL, mode, &mins, &maxs, executor), NPUQ_OK);
        }
        if (!symmetric) {
            npuq_ref_dynamic_quant_asymmetric(b.x.memory, NPUQ_REF_FLOAT16, 1, PERIOD, NULL, NPUQ_REF_FLOAT32, 1, NULL,
                                              false, b.expected, NPUQ_REF_INT8, &expected_scale, &expected_offset);
            if (in_steps) {
                assert_int_equal(npuq_dynamic_quant_params(&mins, &maxs, NPUQ_INT8, &scales, &offsets), NPUQ_OK);
                assert_int_equal(npuq_dynamic_quant_apply(&x, NULL, NULL, mode, &scales, &offsets, &y, executor),
                                 NPUQ_OK);
            } else {
                assert_int_equal(npuq_dynamic_quant_asymmetric(&x, NULL, NULL, mode, &y, &scales, &offsets, executor),
                                 NPUQ_OK);
            }
        } else {
            npuq_ref_dynamic_quant(b.x.memory, NPUQ_REF_FLOAT16, 1, PERIOD, NULL, NPUQ_REF_FLOAT32, 1, NULL, false,
                                   false, b.expected, NPUQ_REF_INT8, &expected_scale);
            if (in_steps) {
                assert_int_equal(
                    npuq_dynamic_quant_symmetric_params(&mins, &maxs, NPUQ_INT8, NPUQ_SCALE_PRODUCT, &scales), NPUQ_OK);
                assert_int_equal(npuq_dynamic_quant_symmetric_apply(&x, NULL, NULL, mode, &mins, &maxs, &y, executor),
                                 NPUQ_OK);
            } else {
                assert_int_equal(npuq_dynamic_quant(&x, NULL, NULL, mode, NPUQ_SCALE_PRODUCT, &y, &scales, executor),
                                 NPUQ_OK);
            }
        }
        test_same(&scale, &expected_scale, sizeof scale, "scale");
        test_same(&offset, &expected_offset, sizeof offset, "offset");
        check_big(&b, mode == NPUQ_PER_TENSOR ? "per tensor" : "per token");
    }
}

/* Blocks of one row, all with one scale; then one block of the whole row. */
static void test_big_blocks(void **unused)
{
    static float scales[PERIODS];

    (void)unused;
    skip_if_small();
    for (int i = 0; i < 2; i++) {
        big b = make_big(NPUQ_FLOAT16, NPUQ_INT8);
        const npuq_tensor x = npuq_vector(b.x.memory, NPUQ_FLOAT16, elements);
        const npuq_tensor y = npuq_vector(b.y.memory, NPUQ_INT8, elements);
        const npuq_tensor scale = npuq_vector(scales, NPUQ_FLOAT32, i == 0 ? PERIODS : 1);
        float expected_scale;

        npuq_ref_dynamic_block_quant(b.x.memory, NPUQ_REF_FLOAT16, 1, PERIOD, PERIOD, 0.0f, b.expected, NPUQ_REF_INT8,
                                     &expected_scale);
        assert_int_equal(npuq_dynamic_block_quant(&x, i == 0 ? PERIOD : elements, 0.0f, &y, &scale, NULL), NPUQ_OK);
        for (int64_t k = 0; k < scale.shape[0]; k++) {
            test_same(&scales[k], &expected_scale, sizeof expected_scale, "scale %d", (int)k);
        }
        check_big(&b, i == 0 ? "blocks" : "one block");
    }
}

/* A column more than 2^32 elements away, reached by strides alone. */
static void test_big_strides(void **unused)
{
    const int64_t shape[] = {PERIODS, 1000};
    const size_t extents[] = {PERIODS, 1000};
    float scale = 1.0f;
    const npuq_tensor scales = npuq_vector(&scale, NPUQ_FLOAT32, 1);
    static uint16_t x_elements[PERIODS][1000];
    static int8_t expected[PERIODS][1000];
    static int8_t contiguous[PERIODS][1000];

    (void)unused;
    skip_if_small();
    big b = make_big(NPUQ_FLOAT16, NPUQ_INT8);
    for (size_t r = 0; r < PERIODS; r++) {
        memcpy(x_elements[r], b.x.memory, sizeof x_elements[r]);
    }
    npuq_tensor x = npuq_tensor_contiguous(b.x.memory, NPUQ_FLOAT16, 2, shape);
    npuq_tensor y = npuq_tensor_contiguous(contiguous, NPUQ_INT8, 2, shape);
    x.strides[0] = PERIOD;
    npuq_ref_quantize(x_elements, NPUQ_REF_FLOAT16, extents, 2, &scale, NPUQ_REF_FLOAT32, 1, NULL, NPUQ_REF_FLOAT32, -1,
                      true, expected, NPUQ_REF_INT8);
    assert_int_equal(npuq_quantize(&x, &scales, NULL, -1, true, &y, NULL), NPUQ_OK);
    test_same(contiguous, expected, sizeof expected, "rows far apart");

    /* The same bytes of y, through the last mapping. */
    y.data = b.y.memory + (size_t)(PERIODS - 1) * PERIOD;
    y.strides[0] = -(int64_t)PERIOD;
    assert_int_equal(npuq_quantize(&x, &scales, NULL, -1, true, &y, &test_shuffled_executor), NPUQ_OK);
    memcpy(b.expected, expected, sizeof expected[0]);
    memset(b.expected + 1000, 0x55, PERIOD - 1000);
    check_big(&b, "rows far apart, backwards");
}

/* The library refuses extents and strides whose products exceed 64 bits or the address space. */
static void test_beyond_everything(void **unused)
{
    static const struct {
        int64_t shape[2];
        int64_t strides[2];
    } views[] = {
        {{INT64_MAX, 2}, {2, 1}},
        {{INT64_C(1) << 32, INT64_C(1) << 32}, {0, 0}},
        {{2, 2}, {INT64_MAX, 1}},
        {{2, 2}, {INT64_MIN, 1}},
        {{3, 2}, {INT64_MAX / 4, INT64_MAX / 4}},
        {{INT64_C(1) << 20, INT64_C(1) << 20}, {INT64_C(1) << 40, 1}},
        {{2, INT64_C(1) << 62}, {1, -2}},
    };
    float memory[4] = {0};
    float scale = 1.0f;
    const npuq_tensor scales = npuq_vector(&scale, NPUQ_FLOAT32, 1);

    (void)unused;
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        npuq_tensor x = npuq_tensor_contiguous(memory, NPUQ_FLOAT32, 2, views[i].shape);
        npuq_tensor y = npuq_tensor_contiguous(memory + 2, NPUQ_INT8, 2, views[i].shape);

        memcpy(x.strides, views[i].strides, sizeof views[i].strides);
        assert_int_equal(npuq_quantize(&x, &scales, NULL, -1, true, &y, NULL), NPUQ_ERROR_LAYOUT);
        assert_non_null(strstr(npuq_last_error(), "quantize: "));
    }
    assert_true(memory[0] == 0.0f && memory[1] == 0.0f && memory[2] == 0.0f && memory[3] == 0.0f);
}

/* ---- many small rows, and dimensions of 1 ---- */

/* Each row is one element in memory. With 32-bit addresses, the bytes of all rows are too many to count. */
static void test_broadcast_rows(void **unused)
{
    const int64_t shape[] = {2, 1 << 30};
    float values[] = {5, 7};
    float min[2] = {0};
    float max[2] = {0};
    npuq_tensor x = npuq_tensor_contiguous(values, NPUQ_FLOAT32, 2, shape);
    const npuq_tensor min_view = npuq_vector(min, NPUQ_FLOAT32, 2);
    const npuq_tensor max_view = npuq_vector(max, NPUQ_FLOAT32, 2);

    (void)unused;
    x.strides[0] = 1;
    x.strides[1] = 0;
    assert_int_equal(npuq_dynamic_quant_min_max(&x, NULL, NULL, NPUQ_PER_TOKEN, &min_view, &max_view, NULL), NPUQ_OK);
    assert_true(min[0] == 5 && max[0] == 5 && min[1] == 7 && max[1] == 7);
}

static void test_million_rows_of_one(void **unused)
{
    enum { ROWS = 1000000 };
    const int64_t shape[] = {ROWS, 1};
    static float x[ROWS];
    static int32_t sums[ROWS];
    static float results[4][ROWS]; /* scale and offset, ours and expected */
    static int8_t y[ROWS];
    static int8_t expected[ROWS];

    (void)unused;
    test_fill(x, NPUQ_FLOAT32, ROWS, false);
    test_fill(sums, NPUQ_INT32, ROWS, true);

    const npuq_tensor x_view = npuq_tensor_contiguous(x, NPUQ_FLOAT32, 2, shape);
    const npuq_tensor y_view = npuq_tensor_contiguous(y, NPUQ_INT8, 2, shape);
    const npuq_tensor scale = npuq_tensor_contiguous(results[0], NPUQ_FLOAT32, 1, shape);
    const npuq_tensor offset = npuq_tensor_contiguous(results[1], NPUQ_FLOAT32, 1, shape);

    npuq_ref_dynamic_quant_asymmetric(x, NPUQ_REF_FLOAT32, ROWS, 1, NULL, NPUQ_REF_FLOAT32, 1, NULL, false, expected,
                                      NPUQ_REF_INT8, results[2], results[3]);
    assert_int_equal(npuq_dynamic_quant_asymmetric(&x_view, NULL, NULL, NPUQ_PER_TOKEN, &y_view, &scale, &offset,
                                                   &test_shuffled_executor),
                     NPUQ_OK);
    test_same(y, expected, ROWS, "y");
    test_same(results[0], results[2], ROWS * sizeof(float), "scale");
    test_same(results[1], results[3], ROWS * sizeof(float), "offset");

    npuq_ref_dynamic_quant(x, NPUQ_REF_FLOAT32, ROWS, 1, NULL, NPUQ_REF_FLOAT32, 1, NULL, false, true, expected,
                           NPUQ_REF_INT8, results[2]);
    assert_int_equal(npuq_dynamic_quant(&x_view, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_INVERSE, &y_view, &scale,
                                        &test_shuffled_executor),
                     NPUQ_OK);
    test_same(y, expected, ROWS, "y, symmetric");
    test_same(results[0], results[2], ROWS * sizeof(float), "scale, symmetric");

    /* Bytes back with a scale, and sums with a scale of each row. */
    const npuq_tensor sums_view = npuq_tensor_contiguous(sums, NPUQ_INT32, 2, shape);
    const npuq_tensor floats = npuq_tensor_contiguous(results[1], NPUQ_FLOAT32, 2, shape);
    float two_thirds = 0.6666667f;
    const npuq_tensor factor = npuq_vector(&two_thirds, NPUQ_FLOAT32, 1);

    npuq_ref_anti_quant(y, NPUQ_REF_INT8, ROWS, 1, &two_thirds, NPUQ_REF_FLOAT32, 1, NULL, results[3],
                        NPUQ_REF_FLOAT32);
    assert_int_equal(npuq_anti_quant(&y_view, &factor, NULL, &floats, &test_shuffled_executor), NPUQ_OK);
    test_same(results[1], results[3], ROWS * sizeof(float), "anti_quant");
    npuq_ref_dequant(sums, ROWS, 1, &two_thirds, NPUQ_REF_FLOAT32, 1, results[0], NULL, NPUQ_REF_FLOAT32, results[3],
                     NPUQ_REF_FLOAT32);
    assert_int_equal(npuq_dequant(&sums_view, &factor, &scale, NULL, &floats, &test_shuffled_executor), NPUQ_OK);
    test_same(results[1], results[3], ROWS * sizeof(float), "dequant");
}

static void test_eight_dimensions_of_one(void **unused)
{
    const int64_t ones[] = {1, 1, 1, 1, 1, 1, 1, 1};
    float x = -2.5f;
    int8_t y = 77;
    float scale = 0.0f;
    float offset = 0.0f;
    npuq_tensor x_view = npuq_tensor_contiguous(&x, NPUQ_FLOAT32, 8, ones);
    npuq_tensor y_view = npuq_tensor_contiguous(&y, NPUQ_INT8, 8, ones);
    const npuq_tensor scale_view = npuq_tensor_contiguous(&scale, NPUQ_FLOAT32, 7, ones);
    const npuq_tensor offset_view = npuq_tensor_contiguous(&offset, NPUQ_FLOAT32, 7, ones);
    npuq_tensor two = npuq_tensor_contiguous(&(float){2.0f}, NPUQ_FLOAT32, 8, ones);

    (void)unused;
    for (int d = 0; d < 8; d++) { /* strides of extents of 1 mean nothing */
        x_view.strides[d] = d % 2 ? INT64_MIN : INT64_MAX;
        y_view.strides[d] = 0;
        two.strides[d] = INT64_MAX;
    }
    assert_int_equal(npuq_quantize(&x_view, &two, NULL, -1, false, &y_view, NULL), NPUQ_OK);
    assert_int_equal(y, -5);
    assert_int_equal(
        npuq_dynamic_quant_asymmetric(&x_view, NULL, NULL, NPUQ_PER_TOKEN, &y_view, &scale_view, &offset_view, NULL),
        NPUQ_OK);
    const float least = 1e-12f; /* a variable: the x87 unit has constants of more digits than a float's */
    assert_true(scale == least);
    assert_int_equal(y, 0); /* -2.5e12 plus an offset of 2.5e12 and 127, which is the same float */

    assert_int_equal(
        npuq_dynamic_quant(&x_view, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_INVERSE, &y_view, &scale_view, NULL),
        NPUQ_OK);
    assert_int_equal(y, -127);
    const npuq_tensor half = npuq_vector(&(float){0.5f}, NPUQ_FLOAT32, 1);
    assert_int_equal(npuq_anti_quant(&y_view, &half, NULL, &x_view, NULL), NPUQ_OK);
    assert_true(x == -63.5f);

    int32_t sum = -1000;
    const uint64_t word = (uint64_t)1 << 46 | (uint64_t)5 << 37 | 0x3E000000; /* an eighth; 5 */
    npuq_tensor sum_view = npuq_tensor_contiguous(&sum, NPUQ_INT32, 8, ones);
    const npuq_tensor word_view = npuq_vector(&word, NPUQ_INT64, 1);

    memcpy(sum_view.strides, x_view.strides, sizeof sum_view.strides);
    scale = 0.25f;
    assert_int_equal(npuq_dequant(&sum_view, &half, &scale_view, NULL, &x_view, NULL), NPUQ_OK);
    assert_true(x == -125.0f);
    assert_int_equal(npuq_requant(&sum_view, &word_view, NULL, &y_view, NULL), NPUQ_OK);
    assert_int_equal(y, -120);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_big_quantize),
        cmocka_unit_test(test_big_group_quant),
        cmocka_unit_test(test_big_anti_quant),
        cmocka_unit_test(test_big_sums),
        cmocka_unit_test(test_big_dynamic),
        cmocka_unit_test(test_big_blocks),
        cmocka_unit_test(test_big_strides),
        cmocka_unit_test(test_beyond_everything),
        cmocka_unit_test(test_broadcast_rows),
        cmocka_unit_test(test_million_rows_of_one),
        cmocka_unit_test(test_eight_dimensions_of_one),
    };
    test_seed();
    return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
