/* SPDX-License-Identifier: BSD-3-Clause */
/* What npuq_call_rebind() refuses, and prepared calls without elements. Runs of prepared calls are in test_operators.c,
 * refused calls in test_errors.c. */
#include "calls.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum test_operator op;
static int number;

static const char *case_name(void)
{
    static char text[96];

    snprintf(text, sizeof text, "%s, case %d, backend %s", operator_names[op], number,
             npuq_backend_name(npuq_active_backend()));
    return text;
}

static void describe(char *line, size_t size, const char *what)
{
    snprintf(line, size, "%s: %s", case_name(), what);
}

#define CHECK(CONDITION)                                                                                               \
    do {                                                                                                               \
        if (!(CONDITION)) {                                                                                            \
            fail_msg("%s: not so: %s", case_name(), #CONDITION);                                                       \
        }                                                                                                              \
    } while (0)

/* Each test draws its own cases, and each case can be run alone. cmocka takes the signals for each test. */
static bool begin_case(int test)
{
    test_describe_faults(describe);
    test_reseed((uint64_t)((test * TEST_OPERATORS + (int)op) * 100000 + number));
    return true;
}

#define FOR_EACH_CASE(TEST, CASES)                                                                                     \
    for (op = 0; op < TEST_OPERATORS; op++)                                                                            \
        for (number = 0; test_takes_executor(op) && number < test_rounds(CASES); number++)                             \
            if (begin_case(TEST))

enum { SIZES_0, REFUSALS };

static test_drawing undrawn(void)
{
    return (test_drawing){.choose = test_below,
                          .add = test_add_view,
                          .call.op = op,
                          .all_contiguous = test_one_in(3),
                          .large = test_one_in(4)};
}

static test_drawing draw_prepared(void)
{
    test_drawing d = undrawn();

    (void)test_draw_prepared(&d);
    return d;
}

static npuq_call prepare(const test_drawing *d)
{
    npuq_call prepared;

    CHECK(test_call_prepare(&prepared, &d->call) == NPUQ_OK);
    return prepared;
}

static void check_done(const test_drawing *d, const test_outcome *expected, const char *how)
{
    test_check_outcome(d, expected, case_name(), how);
}

static void run_all(const test_drawing *d, const npuq_call *prepared, const test_outcome *expected, const char *how)
{
    npuq_call_run(prepared, 0, test_one_in(2) ? SIZE_MAX : npuq_call_units(prepared));
    check_done(d, expected, how);
}

/* ---- other memory ----------------------------------------------------------------------------------------------- */

/* The bytes from the first to the last of a view at data. False without elements. */
static bool find_span(const npuq_tensor *t, uintptr_t data, uintptr_t *first, uintptr_t *last)
{
    const uintptr_t size = npuq_dtype_size(t->dtype);

    *first = data;
    *last = data + size - 1;
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] == 0) {
            return false;
        }
        if (t->shape[i] > 1) {
            *(t->strides[i] < 0 ? first : last) += (uintptr_t)(t->shape[i] - 1) * (uintptr_t)t->strides[i] * size;
        }
    }
    return true;
}

/* The status of npuq_call_rebind(), by a second implementation of its rules. */
static npuq_status refusal_of(const test_drawing *d, enum slot slot, uintptr_t data)
{
    const npuq_tensor *tensor = &d->call.tensors[slot];
    uintptr_t first;
    uintptr_t last;
    uintptr_t other_first;
    uintptr_t other_last;

    if (!find_span(tensor, data, &first, &last)) {
        return NPUQ_OK;
    }
    if (data == 0) {
        return NPUQ_ERROR_NULL;
    }
    if (data % npuq_dtype_size(tensor->dtype) != 0 || first > data || last < data) {
        return NPUQ_ERROR_LAYOUT;
    }
    FOR_EACH_GIVEN(&d->call, other)
    {
        const npuq_tensor *t = &d->call.tensors[other];

        if (other != slot && (test_is_output(op, slot) || test_is_output(op, other)) &&
            find_span(t, (uintptr_t)t->data, &other_first, &other_last) && first <= other_last && other_first <= last) {
            return NPUQ_ERROR_LAYOUT;
        }
    }
    return NPUQ_OK;
}

/* Rebinds the operand in a copy of the call, or in the call itself if the library must refuse. */
static void try_rebind(const test_drawing *d, npuq_call *prepared, enum slot slot, uintptr_t data)
{
    const npuq_status expected = refusal_of(d, slot, data);
    npuq_call copy = *prepared;
    npuq_call *call = expected == NPUQ_OK ? &copy : prepared;

    (void)npuq_set_backend((npuq_backend)-1); /* another message */
    CHECK(npuq_call_rebind(call, (npuq_operand)test_operand_of(op, slot), (void *)data) == expected);
    if (expected != NPUQ_OK) {
        CHECK(!strstr(npuq_last_error(), "backend: ") && strstr(npuq_last_error(), "; expected "));
        CHECK((data % npuq_dtype_size(d->call.tensors[slot].dtype) != 0) ==
              (strstr(npuq_last_error(), "data is misaligned: its address is ") != NULL));
    }
}

/* Null, misaligned, at both ends of the address space, and next to every other tensor, a little less and more. */
static void try_places(const test_drawing *d, npuq_call *prepared, enum slot slot)
{
    const npuq_tensor *tensor = &d->call.tensors[slot];
    const uintptr_t data = (uintptr_t)tensor->data;
    const uintptr_t size = npuq_dtype_size(tensor->dtype);
    uintptr_t first = data;
    uintptr_t last = data;
    uintptr_t other_first;
    uintptr_t other_last;

    try_rebind(d, prepared, slot, 0);
    for (uintptr_t shift = 1; shift < size; shift++) {
        try_rebind(d, prepared, slot, data + shift);
    }
    if (find_span(tensor, data, &first, &last) && last - first >= size) { /* more than one element */
        try_rebind(d, prepared, slot, size);
        try_rebind(d, prepared, slot, (uintptr_t)0 - size);
        try_rebind(d, prepared, slot, (uintptr_t)0 - (last - data) / size * size);
    }
    FOR_EACH_GIVEN(&d->call, other)
    {
        const npuq_tensor *t = &d->call.tensors[other];

        if (!find_span(t, (uintptr_t)t->data, &other_first, &other_last)) {
            continue;
        }
        for (uintptr_t step = 0; step < 5; step++) { /* from two elements before to two behind */
            const uintptr_t behind = other_last + 1 + (data - first);
            const uintptr_t before = other_first - (last - data) - 1;

            try_rebind(d, prepared, slot, (behind + size - 1) / size * size + step * size - 2 * size);
            try_rebind(d, prepared, slot, before / size * size + step * size - 2 * size);
        }
        try_rebind(d, prepared, slot, (uintptr_t)t->data / size * size);
    }
}

/* The message names the operand and lists those that the call has. */
static void check_operand_message(const bool *given, int operand)
{
    static const char *const names[] = {"X", "Y", "SCALE", "OFFSET", "SMOOTH", "BIAS", "ROW_SCALE"};
    const bool is_known = operand >= 0 && operand <= NPUQ_OPERAND_ROW_SCALE;
    const char *list = strstr(npuq_last_error(), "; expected one with which the call was prepared:");
    char word[64];

    snprintf(word, sizeof word, ": operand: is %s (%d);", is_known ? names[operand] : "unknown", operand);
    CHECK(list && strstr(npuq_last_error(), word));
    for (int i = 0; i <= NPUQ_OPERAND_ROW_SCALE; i++) {
        const char *name;
        snprintf(word, sizeof word, " %s", names[i]);
        name = strstr(list, word);
        CHECK(given[i] == (name && strchr(" ", name[strlen(word)])));
    }
}

static void test_refusals(void **unused)
{
    static const int unknown[] = {-1, NPUQ_OPERAND_ROW_SCALE + 1, 99, INT_MAX, INT_MIN};

    (void)unused;
    FOR_EACH_CASE(REFUSALS, 40)
    {
        test_drawing d = draw_prepared();
        test_outcome expected = test_expect_outcome(&d);

        FOR_EACH_BACKEND()
        {
            npuq_call prepared = prepare(&d);
            bool given[NPUQ_OPERAND_ROW_SCALE + 1] = {false};

            FOR_EACH_GIVEN(&d.call, slot)
            {
                if (test_operand_of(op, slot) >= 0) {
                    given[test_operand_of(op, slot)] = true;
                    try_places(&d, &prepared, slot);
                }
            }
            for (int i = 0; i <= NPUQ_OPERAND_ROW_SCALE; i++) {
                if (!given[i]) {
                    CHECK(npuq_call_rebind(&prepared, (npuq_operand)i, d.call.tensors[X].data) == NPUQ_ERROR_ARGUMENT);
                    check_operand_message(given, i);
                }
            }
            for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
                CHECK(npuq_call_rebind(&prepared, (npuq_operand)unknown[i], d.call.tensors[X].data) ==
                      NPUQ_ERROR_ARGUMENT);
                check_operand_message(given, unknown[i]);
            }
            run_all(&d, &prepared, &expected, "after refusals");
        }
        test_free_outcome(&expected);
        test_free_drawing(&d);
    }
}

/* Gives the direct call's results or refusal. Without elements, an operand may have any address. */
static void test_sizes_0(void **unused)
{
    (void)unused;
    FOR_EACH_CASE(SIZES_0, 100)
    {
        test_drawing d = undrawn();

        d.empty = true;
        test_draw_call(&d);
        FOR_EACH_BACKEND()
        {
            npuq_call prepared;
            size_t outputs = 0;
            const npuq_status status = test_call_run(&d.call);
            test_restore_outputs(&d);
            if (test_finds_ranges(op) && d.call.quant_mode == NPUQ_PER_TENSOR) {
                CHECK(test_call_prepare(&prepared, &d.call) != NPUQ_OK);
            } else {
                CHECK(test_call_prepare(&prepared, &d.call) == status);
            }
            if (test_call_prepare(&prepared, &d.call) == NPUQ_OK) {
                test_outcome expected = test_expect_outcome(&d);

                FOR_EACH_OUTPUT(&d.call, slot)
                {
                    outputs += test_count(d.call.tensors[slot].ndim, d.call.tensors[slot].shape);
                }
                CHECK((npuq_call_units(&prepared) > 0) == (outputs > 0));
                FOR_EACH_GIVEN(&d.call, slot)
                {
                    if (test_operand_of(op, slot) >= 0) {
                        try_places(&d, &prepared, slot);
                    }
                }
                test_run_chunks(&prepared);
                check_done(&d, &expected, "no elements");
                test_free_outcome(&expected);
            }
        }
        test_free_drawing(&d);
    }
}

static void check_null_calls(void)
{
    float x = 0;

    assert_int_equal(npuq_call_rebind(NULL, NPUQ_OPERAND_X, &x), NPUQ_ERROR_NULL);
    for (op = 0; op < TEST_OPERATORS; op++) {
        test_drawing d = undrawn();

        if (test_takes_executor(op)) {
            test_draw_call(&d);
            CHECK(test_call_prepare(NULL, &d.call) == NPUQ_ERROR_NULL);
            CHECK(strncmp(npuq_last_error(), operator_names[op], strlen(operator_names[op])) == 0);
            test_free_drawing(&d);
        }
    }
}

/* Rows of x, y and scale interleave: such a y cannot be moved, but separate operands can. */
static void check_interleaved(void)
{
    enum { ROWS = 3, COLS = 8, ROW = 13 }; /* COLS FLOAT16 are 4 words of 4 bytes, INT8 are 2; 1 for scale; 6 apart */
    const int64_t rows = ROWS;
    float memory[ROWS * ROW];
    float expected[ROWS * ROW];
    uint16_t elsewhere[ROWS * ROW * 2] = {0};
    int32_t apart[ROWS * ROW];
    npuq_call prepared;
    npuq_tensor x = npuq_matrix(memory, NPUQ_FLOAT16, ROWS, COLS, 2 * ROW);
    npuq_tensor y = npuq_matrix(memory + 4, NPUQ_INT8, ROWS, COLS, 4 * ROW);
    npuq_tensor scale = npuq_tensor_contiguous(memory + 6, NPUQ_FLOAT32, 1, &rows);

    op = TEST_DYNAMIC_QUANT;
    number = 0;
    scale.strides[0] = ROW;
    test_fill(memory, NPUQ_FLOAT16, ROWS * ROW * 2, true);
    memcpy(elsewhere, memory, sizeof memory);
    CHECK(npuq_prepare_dynamic_quant(&prepared, &x, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &y, &scale) ==
          NPUQ_OK);
    CHECK(npuq_dynamic_quant(&x, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &y, &scale, NULL) == NPUQ_OK);
    memcpy(expected, memory, sizeof memory);
    CHECK(npuq_call_rebind(&prepared, NPUQ_OPERAND_Y, y.data) == NPUQ_ERROR_LAYOUT);
    CHECK(npuq_call_rebind(&prepared, NPUQ_OPERAND_X, x.data) == NPUQ_ERROR_LAYOUT);
    CHECK(npuq_call_rebind(&prepared, NPUQ_OPERAND_X, elsewhere) == NPUQ_OK);
    for (int r = 0; r < ROWS; r++) {
        memset(memory + r * ROW + 4, 0x55, 3 * sizeof *memory);
    }
    npuq_call_run(&prepared, 0, SIZE_MAX);
    test_same(memory, expected, sizeof memory, "x elsewhere");
    CHECK(npuq_call_rebind(&prepared, NPUQ_OPERAND_Y, apart) == NPUQ_OK);
    CHECK(npuq_call_rebind(&prepared, NPUQ_OPERAND_X, memory) == NPUQ_ERROR_LAYOUT); /* scale is still there */
}

/* x and y in one place move together or not at all. */
static void check_in_place(void)
{
    enum { ROWS = 3, COLS = 40 };
    static const float scales[] = {0.5f, 0.25f};
    int32_t sums[ROWS * COLS];
    float expected[ROWS * COLS];
    float elsewhere[ROWS * COLS];
    npuq_call prepared;
    const npuq_tensor x = npuq_matrix(sums, NPUQ_INT32, ROWS, COLS, 0);
    const npuq_tensor y = npuq_matrix(sums, NPUQ_FLOAT32, ROWS, COLS, 0);
    const npuq_tensor scale = npuq_vector(scales, NPUQ_FLOAT32, 1);

    op = TEST_DEQUANT;
    number = 0;
    for (int i = 0; i < ROWS * COLS; i++) {
        sums[i] = i - 50;
        expected[i] = 0.25f * (float)sums[i];
    }
    CHECK(npuq_prepare_dequant(&prepared, &x, &scale, NULL, NULL, &y) == NPUQ_OK);
    CHECK(npuq_call_rebind(&prepared, NPUQ_OPERAND_X, sums) == NPUQ_ERROR_ARGUMENT);
    CHECK(npuq_call_rebind(&prepared, NPUQ_OPERAND_Y, elsewhere) == NPUQ_ERROR_ARGUMENT);
    CHECK(strstr(npuq_last_error(), "dequant: y: is written over x") != NULL);
    CHECK(npuq_call_rebind(&prepared, NPUQ_OPERAND_SCALE, sums + COLS) == NPUQ_ERROR_LAYOUT);
    CHECK(npuq_call_rebind(&prepared, NPUQ_OPERAND_SCALE, scales + 1) == NPUQ_OK);
    npuq_call_run(&prepared, 0, SIZE_MAX);
    test_same(sums, expected, sizeof sums, "y over x");
}

static void test_constructed(void **unused)
{
    (void)unused;
    FOR_EACH_BACKEND()
    {
        check_null_calls();
        check_interleaved();
        check_in_place();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_0),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_constructed),
    };

    test_seed();
    return cmocka_run_group_tests_name("prepared", tests, NULL, NULL);
}
