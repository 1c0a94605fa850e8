/* SPDX-License-Identifier: BSD-3-Clause */
/* Large and unusual sizes of every operator that takes an executor: tensors of more than 2^32 elements, a million rows,
 * rows of one element, eight dimensions of extent 1. Large tensors map one small file again and again: x repeats, and
 * so must y. Then extremes of strides. */
#include "calls.h"

#include "ref/npuq_ref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The period of x, and the number of periods: slightly more than 2^32 elements. */
enum { PERIOD = 1 << 22, PERIODS = 1026 };

/* `times` copies of the same `size` bytes: adjacent mappings if they are whole pages. */
typedef struct windows {
    char *memory;
    size_t size;
    size_t times;
    bool mapped;
} windows;

static windows make_windows(const void *bytes, size_t size, size_t times)
{
    windows w = {.size = size, .times = times, .mapped = times > 1 && size % 65536 == 0};

    if (w.mapped) {
        FILE *file = tmpfile();
        assert_non_null(file);
        assert_int_equal(ftruncate(fileno(file), (off_t)size), 0);
        w.memory = mmap(NULL, size * times, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_ptr_not_equal(w.memory, MAP_FAILED);
        for (size_t i = 0; i < times; i++) {
            char *at = w.memory + i * size;
            assert_ptr_equal(mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(file), 0), at);
        }
        (void)fclose(file); /* the mappings keep the file */
    } else {
        w.memory = test_allocate(size * times);
    }
    for (size_t i = 0; i < (w.mapped ? 1 : times); i++) {
        memcpy(w.memory + i * size, bytes, size);
    }
    return w;
}

static void check_windows(const windows *w, const void *expected, const char *what)
{
    for (size_t i = 0; i < (w->mapped ? 1 : w->times); i++) {
        test_same(w->memory + i * w->size, expected, w->size, "%s", what);
    }
}

static void free_windows(windows *w)
{
    if (w->mapped) {
        assert_int_equal(munmap(w->memory, w->size * w->times), 0);
    } else {
        free(w->memory);
    }
}

static void skip_if_small(void)
{
    if (sizeof(size_t) < 8) {
        print_message("an address space of 32 bits: no tensor is that big\n");
        skip();
    }
}

/* ---- any operator ------------------------------------------------------------------------------------------------ */

/* How to call it. Without optional inputs, all columns have one parameter. */
enum {
    OPTIONAL = 1,   /* with its optional inputs besides groups */
    LAST_TYPES = 2, /* of each row; else the first, and float16 for floats */
    PREPARED = 4,
    WHOLE = 8, /* per tensor, with one block in a row, or in groups along the first axis */
};

/* A call of a period, with the memory of its tensors, and the same call of many periods. */
typedef struct big {
    unsigned how;
    npuq_shape_facts facts[2];
    test_call calls[2];
    windows memory[2][SLOTS];
} big;

/* Two groups, which have the same parameters so that y repeats. The last one is a period. */
static void write_ends(const big *b, int i)
{
    const test_call *c = &b->calls[i];
    const int64_t ends[] = {b->facts[i].shape[0] - b->facts[0].shape[0], b->facts[i].shape[0]};

    for (int e = 0; e < 2; e++) {
        test_put_integer(&c->tensors[GROUP_INDEX], e, ends[e]);
    }
}

static void add(big *b, enum slot slot)
{
    const enum test_operator op = b->calls[0].op;
    const test_argument *a = &test_arguments[op][slot];
    const bool last = b->how & LAST_TYPES;
    const bool floats = a->dtypes[0] == NPUQ_FLOAT32 && a->count > 1;
    const npuq_dtype dtype = a->dtypes[floats ? (last ? 2U : 1U) : last ? a->count - 1 : 0];
    const bool of_groups = a->shape == NPUQ_SHAPE_OF_GROUPS_AND_COLUMNS;
    const bool single = !(b->how & OPTIONAL) && (a->shape == NPUQ_SHAPE_OF_COLUMNS || a->shape == NPUQ_SHAPE_OF_AXIS ||
                                                 (of_groups && !test_needs_groups(op)));
    npuq_tensor t[2];

    for (int i = 0; i < 2; i++) {
        int64_t shape[NPUQ_MAX_NDIM];
        const int ndim = npuq_make_shape(a->shape, &b->facts[i], shape);

        if (single) {
            shape[ndim - 1] = 1;
        } else if (ndim > 0) {
            shape[ndim - 1] /= npuq_values_in_word(dtype);
        }
        t[i] = npuq_tensor_contiguous(NULL, dtype, ndim, shape);
    }
    const size_t unit = test_count(t[0].ndim, t[0].shape) / (of_groups && b->facts[0].groups > 0 ? 2 : 1);
    void *values = test_allocate(unit * npuq_dtype_size(dtype));
    test_fill(values, dtype, unit, true);
    for (int i = 0; i < 2; i++) {
        const size_t times = test_count(t[i].ndim, t[i].shape) / unit;

        b->memory[i][slot] = make_windows(values, unit * npuq_dtype_size(dtype), times);
        t[i].data = b->memory[i][slot].memory;
        for (int d = 0; d < t[i].ndim; d++) { /* strides of extents of 1 mean nothing */
            t[i].strides[d] = t[i].shape[d] > 1 ? t[i].strides[d] : d % 2 ? INT64_MIN : INT64_MAX;
        }
        b->calls[i].given[slot] = true;
        b->calls[i].tensors[slot] = t[i];
        if (slot == GROUP_INDEX) {
            write_ends(b, i);
        }
    }
    free(values);
}

static void run(const big *b)
{
    const test_call *c = &b->calls[1];
    npuq_call prepared;

    if (!(b->how & PREPARED)) {
        assert_int_equal(test_call_run(c), NPUQ_OK);
        return;
    }
    assert_int_equal(test_call_prepare(&prepared, c), NPUQ_OK);
    if (!test_is_output(c->op, SCALE) && !test_is_output(c->op, MIN) &&
        !test_is_output(c->op, MXSCALE)) { /* units are not whole rows */
        assert_true(npuq_call_units(&prepared) >= test_count(b->facts[1].ndim, b->facts[1].shape) / 4096);
    }
    npuq_call_run(&prepared, 0, SIZE_MAX);
}

/* The results of a period by the reference, again and again. */
static void check_operator(enum test_operator op, unsigned how, int ndim, const int64_t *period, const int64_t *shape)
{
    const bool per_tensor = how & WHOLE && test_has_option(op, OPTION_QUANT_MODE);
    const bool of_groups = test_has(op, MXSCALE);
    const int axis = of_groups && how & WHOLE ? 0 : ndim - 1;
    const test_call c = {.op = op,
                         .axis = axis - ndim,
                         .quant_mode = per_tensor ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN,
                         .row_block = period[0] < 128 ? period[0] : 128,
                         .block = of_groups     ? 32
                                  : how & WHOLE ? shape[ndim - 1]
                                                : PERIOD,
                         .executor = op % 4 == 0 && !(how & WHOLE) ? NULL : &test_shuffled_executor};
    const int64_t groups = test_needs_groups(op) ? 2 : 0;
    big b = {how,
             {{ndim, period, per_tensor, axis, c.block, groups, c.row_block},
              {ndim, shape, per_tensor, axis, c.block, groups, c.row_block}},
             {c, c},
             {{{0}}}};
    void *elements[SLOTS] = {NULL};

    for (enum slot slot = 0; slot < SLOTS; slot++) {
        if (test_is_optional(op, slot) ? how & OPTIONAL && slot != GROUP_INDEX : test_has(op, slot)) {
            add(&b, slot);
            elements[slot] = b.memory[0][slot].memory;
        }
    }
    test_call_oracle(&b.calls[0], elements);
    run(&b);
    FOR_EACH_GIVEN(&b.calls[0], slot)
    {
        if (test_is_output(op, slot)) {
            check_windows(&b.memory[1][slot], elements[slot], operator_names[op]);
        }
        free_windows(&b.memory[0][slot]);
        free_windows(&b.memory[1][slot]);
    }
}

static void check_operators(unsigned how, int ndim, const int64_t *period, const int64_t *shape)
{
    for (enum test_operator op = 0; op < TEST_OPERATORS; op++) {
        const int most = test_arguments[op][X].most_ndim;

        if (test_takes_executor(op) &&
            (!(how & WHOLE) || test_has_option(op, OPTION_QUANT_MODE) || test_has_blocks(op))) {
            print_message("# %s\n", operator_names[op]);
            check_operator(op, how, ndim < most ? ndim : most, period, shape);
        }
    }
}

static const int64_t elements = (int64_t)PERIOD * PERIODS;

/* Rows of 2^20 columns with parameters; the last group begins beyond element 2^32. */
static void test_big_rows(void **unused)
{
    (void)unused;
    skip_if_small();
    check_operators(OPTIONAL | LAST_TYPES | PREPARED, 2, (int64_t[]){4, PERIOD / 4},
                    (int64_t[]){(int64_t)4 * PERIODS, PERIOD / 4});
}

static void test_big_row(void **unused)
{
    (void)unused;
    skip_if_small();
    check_operators(0, 2, (int64_t[]){1, PERIOD}, (int64_t[]){1, elements});
}

static void test_big_whole(void **unused)
{
    (void)unused;
    skip_if_small();
    check_operators(WHOLE, 2, (int64_t[]){1, PERIOD}, (int64_t[]){1, elements});
}

static void test_million_rows_of_one(void **unused)
{
    static const int64_t shape[] = {1000000, 1};

    (void)unused;
    check_operators(OPTIONAL, 2, shape, shape);
    check_operators(0, 2, shape, shape);
}

static void test_eight_dimensions_of_one(void **unused)
{
    static const int64_t ones[] = {1, 1, 1, 1, 1, 1, 1, 1};

    (void)unused;
    check_operators(OPTIONAL, 8, ones, ones);
    check_operators(0, 8, ones, ones);
    check_operators(WHOLE, 8, ones, ones);
}

/* ---- extreme strides --------------------------------------------------------------------------------------------- */

/* A column more than 2^32 elements away, reached by strides alone. */
static void test_big_strides(void **unused)
{
    const int64_t shape[] = {PERIODS, 1000};
    const size_t columns = 1000;
    float scale = 1.0f;
    const npuq_tensor scales = npuq_vector(&scale, NPUQ_FLOAT32, 1);
    static uint16_t x_period[PERIOD];
    static int8_t expected[PERIOD];
    static int8_t contiguous[PERIODS][1000];

    (void)unused;
    skip_if_small();
    test_fill(x_period, NPUQ_FLOAT16, PERIOD, true);
    memset(expected, 0x55, PERIOD);
    windows x_windows = make_windows(x_period, sizeof x_period, PERIODS);
    windows y_windows = make_windows(expected, PERIOD, PERIODS);
    npuq_tensor x = npuq_tensor_contiguous(x_windows.memory, NPUQ_FLOAT16, 2, shape);
    npuq_tensor y = npuq_tensor_contiguous(contiguous, NPUQ_INT8, 2, shape);
    x.strides[0] = PERIOD;
    npuq_ref_quantize(x_period, NPUQ_REF_FLOAT16, &columns, 1, &scale, NPUQ_REF_FLOAT32, 1, NULL, NPUQ_REF_FLOAT32, -1,
                      true, expected, NPUQ_REF_INT8);
    assert_int_equal(npuq_quantize(&x, &scales, NULL, -1, true, &y, NULL), NPUQ_OK);
    for (size_t r = 0; r < PERIODS; r++) {
        test_same(contiguous[r], expected, columns, "rows far apart");
    }

    /* The same bytes of y, through the last mapping. */
    y.data = y_windows.memory + (size_t)(PERIODS - 1) * PERIOD;
    y.strides[0] = -(int64_t)PERIOD;
    assert_int_equal(npuq_quantize(&x, &scales, NULL, -1, true, &y, &test_shuffled_executor), NPUQ_OK);
    check_windows(&y_windows, expected, "rows far apart, backwards");
    free_windows(&x_windows);
    free_windows(&y_windows);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_big_rows),
        cmocka_unit_test(test_big_row),
        cmocka_unit_test(test_big_whole),
        cmocka_unit_test(test_big_strides),
        cmocka_unit_test(test_beyond_everything),
        cmocka_unit_test(test_broadcast_rows),
        cmocka_unit_test(test_million_rows_of_one),
        cmocka_unit_test(test_eight_dimensions_of_one),
    };
    test_seed();
    return cmocka_run_group_tests_name("sizes", tests, NULL, NULL);
}
