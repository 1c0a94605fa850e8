/* SPDX-License-Identifier: BSD-3-Clause */
/* Prepared calls of random views against the direct call: any units in any order give its bytes, and write nothing
 * else. Then copies, rebound operands, group_index and words that change too late, and changes of the backend. Refused
 * calls are in test_errors.c, threads in test_threads.c, the floating-point state in test_fp_state.c. */
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

enum { UNITS, SIZES_0, COPIES, REBINDS, REFUSALS, CHANGES, BACKENDS };

static test_drawing undrawn(void)
{
    return (test_drawing){
        .choose = test_below, .call.op = op, .all_contiguous = test_one_in(3), .large = test_one_in(4)};
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

#define FOR_EACH_GIVEN(d, SLOT)                                                                                        \
    for (enum slot SLOT = 0; SLOT < SLOTS; SLOT++)                                                                     \
        if ((d)->call.given[SLOT])

static void check_done(const test_drawing *d, const test_outcome *expected, const char *how)
{
    test_check_outcome(d, expected, case_name(), how);
}

static void run_all(const test_drawing *d, const npuq_call *prepared, const test_outcome *expected, const char *how)
{
    npuq_call_run(prepared, 0, test_one_in(2) ? SIZE_MAX : npuq_call_units(prepared));
    check_done(d, expected, how);
}

/* ---- units ------------------------------------------------------------------------------------------------------ */

static size_t *shuffled(size_t count)
{
    size_t *order = malloc((count + 1) * sizeof *order);

    assert_non_null(order);
    for (size_t i = 0; i < count; i++) {
        const size_t other = test_below(i + 1);

        order[i] = order[other];
        order[other] = i;
    }
    return order;
}

static size_t count_changes(const test_view *view, const unsigned char *before)
{
    size_t changes = 0;

    for (size_t i = 0; i < view->size; i++) {
        changes += view->guarded.memory[i] != before[i];
    }
    return changes;
}

/* In random order. y shows that no unit writes more than `most` elements, unless 0: few bytes stay the same. */
static void run_one_by_one(const test_drawing *d, const npuq_call *prepared, size_t most)
{
    const size_t units = npuq_call_units(prepared);
    const test_view *y = &d->views[Y];
    const bool counts = most > 0 && d->call.given[Y] && y->tensor.ndim > 0 && units < 50;
    const size_t width = counts ? test_count(y->tensor.ndim, y->tensor.shape) * npuq_dtype_size(y->tensor.dtype) : 0;
    unsigned char *before = malloc(y->size + 1);
    size_t *order = shuffled(units);

    assert_non_null(before);
    for (size_t i = 0; i < units; i++) {
        if (counts) {
            memcpy(before, y->guarded.memory, y->size);
        }
        npuq_call_run(prepared, order[i], order[i] + 1);
        CHECK(!counts || count_changes(y, before) <= most * width / test_count(d->ndim, d->shape));
    }
    free(before);
    free(order);
}

/* Ranges of any length, the last to somewhere beyond the end, in random order. */
static void run_in_chunks(const npuq_call *prepared)
{
    const size_t units = npuq_call_units(prepared);
    const size_t chunks = 1 + test_below(5);
    size_t *order = shuffled(chunks);

    for (size_t i = 0; i < chunks; i++) {
        const size_t end = units * (order[i] + 1) / chunks;

        npuq_call_run(prepared, units * order[i] / chunks, end < units ? end : end + test_below(3));
    }
    free(order);
}

/* Ranges without units. */
static void run_nothing(const npuq_call *prepared)
{
    const size_t units = npuq_call_units(prepared);
    const size_t ends[] = {0, 1, units / 2, units, units + 1, SIZE_MAX / 2 + 1, SIZE_MAX};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        for (size_t j = 0; j < sizeof ends / sizeof ends[0]; j++) {
            if (ends[i] >= ends[j] || ends[i] >= units) {
                npuq_call_run(prepared, ends[i], ends[j]);
            }
        }
    }
}

static void test_units(void **unused)
{
    (void)unused;
    FOR_EACH_CASE(UNITS, 300)
    {
        test_drawing d = undrawn();

        if (number % 8 == 0) { /* rows of several units, in the fast path of contiguous tensors */
            d.all_contiguous = d.has_shape = true;
            d.ndim = 2;
            d.shape[0] = 1 + (int64_t)test_below(3);
            d.shape[1] = 8 * (600 + (int64_t)test_below(1000));
        }
        (void)test_draw_prepared(&d);
        test_outcome expected = test_expect_outcome(&d);
        const size_t elements = test_count(d.ndim, d.shape);
        const bool whole_rows = test_finds_ranges(op) || op == TEST_DYNAMIC_BLOCK_QUANT;
        const size_t row = whole_rows && elements > 0 ? (size_t)d.shape[d.ndim - 1] : 1;
        const size_t most = row > 4096 ? row : 4096; /* elements of a unit */

        FOR_EACH_BACKEND()
        {
            npuq_call prepared = prepare(&d);

            CHECK(npuq_call_units(&prepared) >= (elements + most - 1) / most);
            run_nothing(&prepared);
            check_done(&d, NULL, "no units");
            run_all(&d, &prepared, &expected, "all units");
            run_one_by_one(&d, &prepared, most);
            check_done(&d, &expected, "one unit after the other");
            run_in_chunks(&prepared);
            check_done(&d, &expected, "several units at once");
            npuq_call_run(&prepared, 0, SIZE_MAX);
            npuq_call_run(&prepared, npuq_call_units(&prepared) / 2, SIZE_MAX);
            check_done(&d, &expected, "half of the units again");
        }
        test_free_outcome(&expected);
        test_free_drawing(&d);
    }
}

/* Rows of more columns than a unit may have, and than joined units may have. */
static void check_long_rows(void)
{
    enum { ROWS = 3, MOST = 40000 };
    static const int64_t widths[] = {6000, MOST};
    static float x[ROWS * MOST];
    static float smooth[MOST];
    static int8_t y[ROWS * MOST];
    static int8_t expected[ROWS * MOST];
    float parameters[2 * ROWS];
    float expected_parameters[2 * ROWS];
    const npuq_tensor scale = npuq_vector(parameters, NPUQ_FLOAT32, ROWS);
    const npuq_tensor offset = npuq_vector(parameters + ROWS, NPUQ_FLOAT32, ROWS);

    op = TEST_DYNAMIC_QUANT_ASYMMETRIC;
    for (int i = 0; i < ROWS * MOST; i++) { /* no infinite product: y would be 0 */
        x[i] = (float)(i * 31 % 255 - 127);
        smooth[i % MOST] = (float)(i % MOST % 13 + 1);
    }
    for (number = 0; number < 2; number++) {
        const int64_t width = widths[number];
        const npuq_tensor x_view = npuq_matrix(x, NPUQ_FLOAT32, ROWS, width, 0);
        const npuq_tensor smooth_view = npuq_vector(smooth, NPUQ_FLOAT32, width);
        const npuq_tensor y_view = npuq_matrix(y, NPUQ_INT8, ROWS, width, 0);
        npuq_call prepared;

        CHECK(npuq_dynamic_quant_asymmetric(&x_view, &smooth_view, NULL, NPUQ_PER_TOKEN, &y_view, &scale, &offset,
                                            NULL) == NPUQ_OK);
        memcpy(expected, y, sizeof y);
        memcpy(expected_parameters, parameters, sizeof parameters);
        memset(y, 0x55, (size_t)(ROWS * width));
        memset(parameters, 0x55, sizeof parameters);
        CHECK(npuq_prepare_dynamic_quant_asymmetric(&prepared, &x_view, &smooth_view, NULL, NPUQ_PER_TOKEN, &y_view,
                                                    &scale, &offset) == NPUQ_OK);
        CHECK(npuq_call_units(&prepared) == ROWS);
        npuq_call_run(&prepared, 0, SIZE_MAX);
        test_same(parameters, expected_parameters, sizeof parameters, "scale and offset of long rows");
        test_same(y, expected, sizeof y, "long rows");
        memset(y, 0x55, (size_t)(ROWS * width));
        CHECK(npuq_prepare_dynamic_quant_apply(&prepared, &x_view, &smooth_view, NULL, NPUQ_PER_TOKEN, &scale, &offset,
                                               &y_view) == NPUQ_OK);
        for (size_t unit = 0; unit < npuq_call_units(&prepared); unit++) {
            npuq_call_run(&prepared, unit, unit + 1);
        }
        test_same(y, expected, sizeof y, "long rows, applied");
    }
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

static void test_copies(void **unused)
{
    (void)unused;
    FOR_EACH_CASE(COPIES, 30)
    {
        test_drawing d = draw_prepared();
        test_outcome expected = test_expect_outcome(&d);
        const test_call call = d.call;

        FOR_EACH_BACKEND()
        {
            npuq_call prepared = prepare(&d);
            npuq_call *copy = malloc(sizeof *copy);

            assert_non_null(copy);
            memset(&d.call.tensors, 0xA5, sizeof d.call.tensors);
            *copy = prepared;
            memset(&prepared, test_one_in(2) ? 0xA5 : 0, sizeof prepared);
            run_all(&d, copy, &expected, "a copy");
            prepared = *copy;
            memset(copy, 0x5A, sizeof *copy);
            free(copy);
            run_all(&d, &prepared, &expected, "a copy of the copy");
            d.call = call;
        }
        test_free_outcome(&expected);
        test_free_drawing(&d);
    }
}

/* ---- other memory ----------------------------------------------------------------------------------------------- */

static void refill(test_drawing *d, enum slot slot)
{
    test_view *view = &d->views[slot];
    const npuq_dtype dtype = view->tensor.dtype;
    const size_t count = test_count(view->tensor.ndim, view->tensor.shape);
    unsigned char *elements = malloc(count * npuq_dtype_size(dtype) + 1);

    assert_non_null(elements);
    if (!test_is_output(op, slot)) {
        test_fill(elements, dtype, count, test_one_in(2));
        test_view_write(&view->tensor, elements);
        memcpy(view->before, view->guarded.memory, view->size);
    }
    free(elements);
}

static void move(test_drawing *d, enum slot slot)
{
    test_view *view = &d->views[slot];
    npuq_tensor *tensor = &view->tensor;
    const ptrdiff_t first = (unsigned char *)tensor->data - view->guarded.memory;

    test_guarded_free(&view->guarded);
    view->guarded = test_guarded_make(view->size, test_one_in(2), test_below(16) * npuq_dtype_size(tensor->dtype));
    memcpy(view->guarded.memory, view->before, view->size);
    tensor->data = view->guarded.memory + first;
    d->call.tensors[slot].data = tensor->data;
}

/* After new values or new memory, the call gives the results of a new call. */
static void test_rebinds(void **unused)
{
    (void)unused;
    FOR_EACH_CASE(REBINDS, 30)
    {
        test_drawing d = draw_prepared();

        FOR_EACH_BACKEND()
        {
            npuq_call prepared = prepare(&d);

            FOR_EACH_GIVEN(&d, slot)
            {
                const int operand = test_operand_of(slot);

                for (int moves = 0; operand >= 0 && moves < 3; moves++) {
                    refill(&d, slot);
                    if (moves) {
                        move(&d, slot);
                        CHECK(npuq_call_rebind(&prepared, (npuq_operand)operand, d.call.tensors[slot].data) == NPUQ_OK);
                    }
                    test_outcome expected = test_expect_outcome(&d);
                    run_in_chunks(&prepared);
                    check_done(&d, &expected, slot_names[slot]);
                    test_free_outcome(&expected);
                }
            }
        }
        test_free_drawing(&d);
    }
}

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
    FOR_EACH_GIVEN(d, other)
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
    CHECK(npuq_call_rebind(call, (npuq_operand)test_operand_of(slot), (void *)data) == expected);
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
    FOR_EACH_GIVEN(d, other)
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

            FOR_EACH_GIVEN(&d, slot)
            {
                if (test_operand_of(slot) >= 0) {
                    given[test_operand_of(slot)] = true;
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

                FOR_EACH_GIVEN(&d, slot)
                {
                    const npuq_tensor *t = &d.call.tensors[slot];
                    outputs += test_is_output(op, slot) ? test_count(t->ndim, t->shape) : 0;
                }
                CHECK((npuq_call_units(&prepared) > 0) == (outputs > 0));
                FOR_EACH_GIVEN(&d, slot)
                {
                    if (test_operand_of(slot) >= 0) {
                        try_places(&d, &prepared, slot);
                    }
                }
                run_one_by_one(&d, &prepared, 0);
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

/* ---- too late --------------------------------------------------------------------------------------------------- */

/* Random values, or all of one bad kind. */
static void spoil(test_drawing *d, enum slot slot)
{
    test_view *view = &d->views[slot];
    const size_t size = npuq_dtype_size(view->tensor.dtype);
    const size_t count = test_count(view->tensor.ndim, view->tensor.shape);
    const unsigned kind = (unsigned)test_below(4);
    unsigned char *elements = malloc(count * size + 1);

    assert_non_null(elements);
    for (size_t i = 0; i < count; i++) {
        const int64_t rows = (int64_t)test_below(40) - 10;
        const uint64_t value = kind == 0   ? test_random()
                               : kind == 1 ? (uint64_t)rows
                               : kind == 2 ? (uint64_t)(size == 4 ? INT32_MIN : INT64_MIN) - test_below(2)
                                           : (uint64_t)(test_one_in(2) ? rows : INT32_MAX) << test_below(33);
        const uint32_t low = (uint32_t)value;

        memcpy(elements + i * size, size == 4 ? (const void *)&low : (const void *)&value, size);
    }
    test_view_write(&view->tensor, elements);
    memcpy(view->before, view->guarded.memory, view->size);
    free(elements);
}

static void repair(test_drawing *d, enum slot slot, const unsigned char *bytes)
{
    test_view *view = &d->views[slot];

    memcpy(view->before, bytes, view->size);
    memcpy(view->guarded.memory, bytes, view->size);
}

static void test_late_changes(void **unused)
{
    (void)unused;
    FOR_EACH_CASE(CHANGES, 120)
    {
        test_drawing d = draw_prepared();
        const enum slot slot = op == TEST_REQUANT ? WORDS : GROUP_INDEX;

        if (d.call.given[slot]) {
            unsigned char *bytes = malloc(d.views[slot].size + 1);

            assert_non_null(bytes);
            memcpy(bytes, d.views[slot].before, d.views[slot].size);
            FOR_EACH_BACKEND()
            {
                npuq_call prepared = prepare(&d);

                for (int again = 0; again < 4; again++) {
                    spoil(&d, slot);
                    if (again % 2) {
                        run_in_chunks(&prepared);
                    } else {
                        run_one_by_one(&d, &prepared, 0);
                    }
                    FOR_EACH_GIVEN(&d, other)
                    {
                        if (test_is_output(op, other)) {
                            test_view_untouched_outside(&d.views[other]);
                        } else {
                            test_view_untouched(&d.views[other]);
                        }
                    }
                    test_restore_outputs(&d);
                }
                repair(&d, slot, bytes);
            }
            free(bytes);
        }
        test_free_drawing(&d);
    }
}

/* After another backend is chosen, a run gives the same results and keeps the choice. Results cannot show which kernels
 * run: all backends give the same bits. */
static void test_backend_changes(void **unused)
{
    (void)unused;
    FOR_EACH_CASE(BACKENDS, 30)
    {
        test_drawing d = draw_prepared();
        test_outcome expected = test_expect_outcome(&d);

        FOR_EACH_BACKEND()
        {
            npuq_call prepared = prepare(&d);

            for (npuq_backend b = NPUQ_BACKEND_REF; strcmp(npuq_backend_name(b), "unknown") != 0; b++) {
                if (npuq_set_backend(b) == NPUQ_OK) {
                    run_all(&d, &prepared, &expected, "another backend");
                    CHECK(npuq_active_backend() == b);
                }
            }
        }
        test_free_outcome(&expected);
        test_free_drawing(&d);
    }
}

static void test_constructed(void **unused)
{
    (void)unused;
    FOR_EACH_BACKEND()
    {
        check_long_rows();
        check_null_calls();
        check_interleaved();
        check_in_place();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),       cmocka_unit_test(test_sizes_0),         cmocka_unit_test(test_copies),
        cmocka_unit_test(test_rebinds),     cmocka_unit_test(test_refusals),        cmocka_unit_test(test_late_changes),
        cmocka_unit_test(test_constructed), cmocka_unit_test(test_backend_changes),
    };

    test_seed();
    return cmocka_run_group_tests_name("prepared", tests, NULL, NULL);
}
