/* SPDX-License-Identifier: BSD-3-Clause */
/* Drawn calls whose arguments are views with guard pages around them, and what such calls write. */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cases ------------------------------------------------------------------------------------------------------ */

test_drawing test_undrawn(enum test_operator op)
{
    return (test_drawing){.choose = test_below, .add = test_add_view, .call.op = op};
}

test_case now;

const char *test_case_name(void)
{
    static char text[128];

    snprintf(text, sizeof text, "%s, %s %d, backend %s", operator_names[now.op], now.kind, now.number,
             npuq_backend_name(npuq_active_backend()));
    return text;
}

static void describe(char *line, size_t size, const char *what)
{
    snprintf(line, size, "%s, %s: %s", test_case_name(), now.way, what);
}

void test_begin_case(size_t kind)
{
    test_describe_faults(describe); /* cmocka takes the signals for each test */
    test_reseed((kind * TEST_OPERATORS + (size_t)now.op) * 100000 + (size_t)now.number);
}

/* ---- views ------------------------------------------------------------------------------------------------------ */

static bool chance(const test_drawing *d, size_t n)
{
    return d->choose(n) == n - 1;
}

static test_view make_view(const test_drawing *d, npuq_dtype dtype, int ndim, const int64_t *shape, bool is_input)
{
    const test_layout layout = d->all_contiguous || chance(d, 3) ? TEST_CONTIGUOUS
                               : is_input && chance(d, 3)        ? TEST_BROADCAST
                                                                 : TEST_STRIDED;
    int64_t stored[NPUQ_MAX_NDIM];

    memcpy(stored, shape, (size_t)ndim * sizeof *stored);
    if (ndim > 0) {
        stored[ndim - 1] /= npuq_values_in_word(dtype);
    }
    return test_view_make(dtype, ndim, stored, layout);
}

static void give(test_drawing *d, enum slot slot, test_view view)
{
    d->views[slot] = view;
    d->call.given[slot] = true;
    d->call.tensors[slot] = view.tensor;
}

static void write_input(test_drawing *d, enum slot slot, const void *elements)
{
    test_view *view = &d->views[slot];

    test_view_write(&view->tensor, elements);
    memcpy(view->before, view->guarded.memory, view->size);
}

/* An input with values; x is never one repeated element. */
static void add_input(test_drawing *d, enum slot slot, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    test_view view = make_view(d, dtype, ndim, shape, true);

    if (slot == X && test_repeats_one_element(&view.tensor)) {
        test_view_free(&view);
        view = test_view_make(dtype, ndim, view.tensor.shape, TEST_CONTIGUOUS);
    }
    const size_t count = test_count(ndim, view.tensor.shape);
    void *elements = test_allocate(count * npuq_dtype_size(dtype));
    const bool finite = !chance(d, 3);
    const bool few = !finite && chance(d, 2) && count > 16; /* NaN and infinities in one place only */
    if (d->fill) {
        d->fill(&d->call, slot, elements, dtype, count);
    } else {
        test_fill(elements, dtype, count, finite || few);
        if (few) {
            test_fill((char *)elements + d->choose(count - 16) * npuq_dtype_size(dtype), dtype, 16, false);
        }
    }
    give(d, slot, view);
    write_input(d, slot, elements);
    free(elements);
    if (slot == WORDS && d->call.y_dtype == NPUQ_FLOAT16) {
        test_view_any_flags(&d->views[WORDS].tensor);
        memcpy(d->views[WORDS].before, d->views[WORDS].guarded.memory, d->views[WORDS].size);
    }
}

static void add_groups(test_drawing *d, npuq_dtype dtype)
{
    test_view *view = &d->views[GROUP_INDEX];

    give(d, GROUP_INDEX, test_view_make(dtype, 1, &d->groups, chance(d, 2) ? TEST_STRIDED : TEST_CONTIGUOUS));
    for (int64_t e = 0; e < d->groups; e++) {
        test_put_integer(&view->tensor, e, d->ends[e]);
    }
    memcpy(view->before, view->guarded.memory, view->size);
}

void test_add_view(test_drawing *d, enum slot slot, npuq_dtype dtype, int ndim, const int64_t *shape)
{
    if (slot == GROUP_INDEX) {
        add_groups(d, dtype);
    } else if (test_is_output(d->call.op, slot)) {
        give(d, slot, make_view(d, dtype, ndim, shape, false));
    } else {
        add_input(d, slot, dtype, ndim, shape);
    }
}

void test_free_drawing(test_drawing *d)
{
    FOR_EACH_GIVEN(&d->call, slot)
    {
        test_view_free(&d->views[slot]);
    }
}

void test_draw_elements(test_drawing *d)
{
    const test_drawing undrawn = *d;

    for (test_draw_call(d); test_count(d->ndim, d->shape) == 0; test_draw_call(d)) {
        test_free_drawing(d);
        *d = undrawn;
    }
}

npuq_call test_draw_prepared(test_drawing *d)
{
    const test_drawing undrawn = *d;
    npuq_call prepared;

    for (;;) {
        test_draw_call(d);
        if (test_call_prepare(&prepared, &d->call) == NPUQ_OK) {
            return prepared;
        }
        /* The library prepares no range per tensor, and refuses some calls without elements. */
        if (test_count(d->ndim, d->shape) > 0 &&
            !(test_finds_ranges(d->call.op) && d->call.quant_mode == NPUQ_PER_TENSOR)) {
            fail_msg("not prepared: %s", npuq_last_error());
        }
        test_free_drawing(d);
        *d = undrawn;
    }
}

size_t *test_shuffled(size_t count)
{
    size_t *order = test_allocate(count * sizeof *order);

    for (size_t i = 0; i < count; i++) {
        const size_t other = test_below(i + 1);

        order[i] = order[other];
        order[other] = i;
    }
    return order;
}

npuq_status test_rebind_all(npuq_call *prepared, const test_call *c)
{
    npuq_status status = NPUQ_OK;

    FOR_EACH_GIVEN(c, slot)
    {
        const int operand = test_operand_of(c->op, slot);

        if (operand >= 0 && status == NPUQ_OK) {
            status = npuq_call_rebind(prepared, (npuq_operand)operand, c->tensors[slot].data);
        }
    }
    return status;
}

void test_run_all(const npuq_call *prepared)
{
    npuq_call_run(prepared, 0, test_one_in(2) ? SIZE_MAX : npuq_call_units(prepared));
}

void test_run_chunks(const npuq_call *prepared)
{
    const size_t units = npuq_call_units(prepared);
    const size_t chunks = 1 + test_below(5);
    size_t *order = test_shuffled(chunks);

    for (size_t i = 0; i < chunks; i++) {
        const size_t end = units * (order[i] + 1) / chunks;

        npuq_call_run(prepared, units * order[i] / chunks, end < units ? end : end + test_below(3));
    }
    free(order);
}

/* ---- what they write -------------------------------------------------------------------------------------------- */

void test_restore_outputs(const test_drawing *d)
{
    FOR_EACH_OUTPUT(&d->call, slot)
    {
        memcpy(d->views[slot].guarded.memory, d->views[slot].before, d->views[slot].size);
    }
}

test_outcome test_expect_outcome(const test_drawing *d)
{
    test_outcome outcome = {{NULL}};

    if (test_call_run(&d->call) != NPUQ_OK) {
        fail_msg("%s", npuq_last_error());
    }
    FOR_EACH_OUTPUT(&d->call, slot)
    {
        outcome.bytes[slot] = test_allocate(d->views[slot].size);
        memcpy(outcome.bytes[slot], d->views[slot].guarded.memory, d->views[slot].size);
    }
    test_restore_outputs(d);
    return outcome;
}

void test_free_outcome(test_outcome *outcome)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        free(outcome->bytes[slot]);
    }
}

test_copy test_copy_call(const test_drawing *d)
{
    test_copy copy = {.call = d->call};

    FOR_EACH_OUTPUT(&d->call, slot)
    {
        const test_view *view = &d->views[slot];

        copy.outputs.bytes[slot] = malloc(view->size + 1);
        if (!copy.outputs.bytes[slot]) {
            abort();
        }
        memcpy(copy.outputs.bytes[slot], view->before, view->size);
        copy.call.tensors[slot].data =
            copy.outputs.bytes[slot] + ((unsigned char *)view->tensor.data - view->guarded.memory);
    }
    return copy;
}

void test_free_copy(test_copy *copy)
{
    test_free_outcome(&copy->outputs);
}

bool test_copy_is(const test_copy *copy, const test_drawing *d, const test_outcome *expected)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        if (expected->bytes[slot] &&
            memcmp(copy->outputs.bytes[slot], expected->bytes[slot], d->views[slot].size) != 0) {
            return false;
        }
    }
    return true;
}

void test_check_outcome(const test_drawing *d, const test_outcome *expected)
{
    FOR_EACH_GIVEN(&d->call, slot)
    {
        const test_view *view = &d->views[slot];
        const bool is_output = expected && test_is_output(d->call.op, slot);

        test_same(view->guarded.memory, is_output ? expected->bytes[slot] : view->before, view->size, "%s, %s: %s",
                  test_case_name(), slot_names[slot], now.way);
    }
    test_restore_outputs(d);
}
