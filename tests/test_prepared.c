/* SPDX-License-Identifier: BSD-3-Clause */
/* What npuq_call_rebind() refuses, and prepared calls without elements. Runs of prepared calls are in test_operators.c,
 * refused calls in test_errors.c. */
#include "calls.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each test draws its own cases. */
enum { NO_ELEMENTS, REFUSALS };

#define FOR_EACH_CASE(CASES)                                                                                           \
    for (now.op = 0; now.op < TEST_OPERATORS; now.op++)                                                                \
        for (now.number = 0; test_takes_executor(now.op) && now.number < test_rounds(CASES); now.number++)

static test_drawing begin_case(size_t kind)
{
    test_begin_case(kind);
    test_drawing d = test_undrawn(now.op);
    d.all_contiguous = test_one_in(3);
    d.large = test_one_in(4);
    return d;
}

static npuq_call prepare(const test_drawing *d)
{
    npuq_call prepared;

    test_check(test_call_prepare(&prepared, &d->call) == NPUQ_OK);
    return prepared;
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

        if (other != slot && (test_is_output(now.op, slot) || test_is_output(now.op, other)) &&
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
    test_check(npuq_call_rebind(call, (npuq_operand)test_operand_of(now.op, slot), (void *)data) == expected);
    if (expected != NPUQ_OK) {
        test_check(!strstr(npuq_last_error(), "backend: ") && strstr(npuq_last_error(), "; expected "));
        test_check((data % npuq_dtype_size(d->call.tensors[slot].dtype) != 0) ==
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
    test_check(list && strstr(npuq_last_error(), word));
    for (int i = 0; i <= NPUQ_OPERAND_ROW_SCALE; i++) {
        const char *name;
        snprintf(word, sizeof word, " %s", names[i]);
        name = strstr(list, word);
        test_check(given[i] == (name && strchr(" ", name[strlen(word)])));
    }
}

static void test_refusals(void **unused)
{
    static const int unknown[] = {-1, NPUQ_OPERAND_ROW_SCALE + 1, 99, INT_MAX, INT_MIN};

    (void)unused;
    now.kind = "refusals";
    FOR_EACH_CASE(40)
    {
        test_drawing d = begin_case(REFUSALS);

        now.way = "rebound";
        (void)test_draw_prepared(&d);
        test_outcome expected = test_expect_outcome(&d);

        FOR_EACH_BACKEND()
        {
            npuq_call prepared = prepare(&d);
            bool given[NPUQ_OPERAND_ROW_SCALE + 1] = {false};

            FOR_EACH_GIVEN(&d.call, slot)
            {
                if (test_operand_of(now.op, slot) >= 0) {
                    given[test_operand_of(now.op, slot)] = true;
                    try_places(&d, &prepared, slot);
                }
            }
            for (int i = 0; i <= NPUQ_OPERAND_ROW_SCALE; i++) {
                if (!given[i]) {
                    test_check(npuq_call_rebind(&prepared, (npuq_operand)i, d.call.tensors[X].data) ==
                               NPUQ_ERROR_ARGUMENT);
                    check_operand_message(given, i);
                }
            }
            for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
                test_check(npuq_call_rebind(&prepared, (npuq_operand)unknown[i], d.call.tensors[X].data) ==
                           NPUQ_ERROR_ARGUMENT);
                check_operand_message(given, unknown[i]);
            }
            test_run_all(&prepared);
            test_check_outcome(&d, &expected);
        }
        test_free_outcome(&expected);
        test_free_drawing(&d);
    }
}

/* Gives the direct call's results or refusal. Without elements, an operand may have any address. */
static void test_sizes_0(void **unused)
{
    (void)unused;
    now.kind = "no elements";
    now.way = "prepared";
    FOR_EACH_CASE(100)
    {
        test_drawing d = begin_case(NO_ELEMENTS);

        d.empty = true;
        test_draw_call(&d);
        FOR_EACH_BACKEND()
        {
            npuq_call prepared;
            size_t outputs = 0;
            const npuq_status status = test_call_run(&d.call);
            test_restore_outputs(&d);
            if (test_finds_ranges(now.op) && d.call.quant_mode == NPUQ_PER_TENSOR) {
                test_check(test_call_prepare(&prepared, &d.call) != NPUQ_OK);
            } else {
                test_check(test_call_prepare(&prepared, &d.call) == status);
            }
            if (test_call_prepare(&prepared, &d.call) == NPUQ_OK) {
                test_outcome expected = test_expect_outcome(&d);

                FOR_EACH_OUTPUT(&d.call, slot)
                {
                    outputs += test_count(d.call.tensors[slot].ndim, d.call.tensors[slot].shape);
                }
                test_check((npuq_call_units(&prepared) > 0) == (outputs > 0));
                FOR_EACH_GIVEN(&d.call, slot)
                {
                    if (test_operand_of(now.op, slot) >= 0) {
                        try_places(&d, &prepared, slot);
                    }
                }
                test_run_chunks(&prepared);
                test_check_outcome(&d, &expected);
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
    for (now.op = 0; now.op < TEST_OPERATORS; now.op++) {
        test_drawing d = test_undrawn(now.op);

        if (test_takes_executor(now.op)) {
            test_draw_call(&d);
            test_check(test_call_prepare(NULL, &d.call) == NPUQ_ERROR_NULL);
            test_check(strncmp(npuq_last_error(), operator_names[now.op], strlen(operator_names[now.op])) == 0);
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

    now.op = TEST_DYNAMIC_QUANT;
    scale.strides[0] = ROW;
    test_fill(memory, NPUQ_FLOAT16, ROWS * ROW * 2, true);
    memcpy(elsewhere, memory, sizeof memory);
    test_check(npuq_prepare_dynamic_quant(&prepared, &x, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &y, &scale) ==
               NPUQ_OK);
    test_check(npuq_dynamic_quant(&x, NULL, NULL, NPUQ_PER_TOKEN, NPUQ_SCALE_PRODUCT, &y, &scale, NULL) == NPUQ_OK);
    memcpy(expected, memory, sizeof memory);
    test_check(npuq_call_rebind(&prepared, NPUQ_OPERAND_Y, y.data) == NPUQ_ERROR_LAYOUT);
    test_check(npuq_call_rebind(&prepared, NPUQ_OPERAND_X, x.data) == NPUQ_ERROR_LAYOUT);
    test_check(npuq_call_rebind(&prepared, NPUQ_OPERAND_X, elsewhere) == NPUQ_OK);
    for (int r = 0; r < ROWS; r++) {
        memset(memory + r * ROW + 4, 0x55, 3 * sizeof *memory);
    }
    npuq_call_run(&prepared, 0, SIZE_MAX);
    test_same(memory, expected, sizeof memory, "x elsewhere");
    test_check(npuq_call_rebind(&prepared, NPUQ_OPERAND_Y, apart) == NPUQ_OK);
    test_check(npuq_call_rebind(&prepared, NPUQ_OPERAND_X, memory) == NPUQ_ERROR_LAYOUT); /* scale is still there */
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

    now.op = TEST_DEQUANT;
    for (int i = 0; i < ROWS * COLS; i++) {
        sums[i] = i - 50;
        expected[i] = 0.25f * (float)sums[i];
    }
    test_check(npuq_prepare_dequant(&prepared, &x, &scale, NULL, NULL, &y) == NPUQ_OK);
    test_check(npuq_call_rebind(&prepared, NPUQ_OPERAND_X, sums) == NPUQ_ERROR_ARGUMENT);
    test_check(npuq_call_rebind(&prepared, NPUQ_OPERAND_Y, elsewhere) == NPUQ_ERROR_ARGUMENT);
    test_check(strstr(npuq_last_error(), "dequant: y: is written over x") != NULL);
    test_check(npuq_call_rebind(&prepared, NPUQ_OPERAND_SCALE, sums + COLS) == NPUQ_ERROR_LAYOUT);
    test_check(npuq_call_rebind(&prepared, NPUQ_OPERAND_SCALE, scales + 1) == NPUQ_OK);
    npuq_call_run(&prepared, 0, SIZE_MAX);
    test_same(sums, expected, sizeof sums, "y over x");
}

static void test_constructed(void **unused)
{
    (void)unused;
    now = (test_case){.kind = "constructed", .way = "prepared"};
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
