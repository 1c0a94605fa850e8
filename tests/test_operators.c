/* SPDX-License-Identifier: BSD-3-Clause */
/* The operators against the reference: drawn calls of all types, options, shapes and layouts, each made in several
 * ways: at once, prepared, in units, on threads, in shards, in other floating-point states. With every backend each way
 * gives the reference's bytes, and writes nothing else. Then calls that are constructed. */
#include "calls.h"
#include "fp_states.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_ok(npuq_status status)
{
    if (status != NPUQ_OK) {
        fail_msg("backend %s: %s: %s", npuq_backend_name(npuq_active_backend()), npuq_status_name(status),
                 npuq_last_error());
    }
}

/* ---- a trial ----------------------------------------------------------------------------------------------------- */

/* A drawn call, the elements of its tensors in row-major order, and what a run must write: the reference's results. */
typedef struct trial {
    test_drawing d;
    void *elements[SLOTS];
    test_outcome expected;
} trial;

/* Checks all bytes of all arguments, and puts the outputs back. */
static void check(const trial *t)
{
    test_check_outcome(&t->d, &t->expected);
}

/* Computes the results of a drawn call. */
static trial try_drawing(test_drawing d)
{
    trial t = {.d = d};

    FOR_EACH_GIVEN(&t.d.call, slot)
    {
        const npuq_tensor *tensor = &t.d.call.tensors[slot];

        t.elements[slot] = test_allocate(test_count(tensor->ndim, tensor->shape) * npuq_dtype_size(tensor->dtype));
        test_view_read(tensor, t.elements[slot]);
    }
    test_call_oracle(&t.d.call, t.elements);
    FOR_EACH_OUTPUT(&t.d.call, slot)
    {
        const test_view *view = &t.d.views[slot];
        npuq_tensor tensor = view->tensor;
        unsigned char *bytes = t.expected.bytes[slot] = test_allocate(view->size);

        memcpy(bytes, view->before, view->size);
        tensor.data = bytes + ((unsigned char *)tensor.data - view->guarded.memory);
        test_view_write(&tensor, t.elements[slot]);
    }
    return t;
}

static void free_trial(trial *t)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        free(t->elements[slot]);
    }
    test_free_outcome(&t->expected);
    test_free_drawing(&t->d);
}

/* ---- ways: at once ----------------------------------------------------------------------------------------------- */

/* A way runs the call and checks what it wrote. It returns false if there is no such way for the call. */
typedef bool way_function(const trial *t);

static bool run_with(const trial *t, const npuq_executor *executor)
{
    test_call call = t->d.call;

    call.executor = executor;
    check_ok(test_call_run(&call));
    check(t);
    return true;
}

static bool at_once(const trial *t)
{
    return run_with(t, test_one_in(2) ? &test_shuffled_executor : NULL);
}

static const size_t partitions[][TEST_THREADS + 1] = {
    {0, 250, 500, 750, 1000}, {0, 0, 1, 999, 1000}, {0, 1000, 1000, 1000, 1000}, {0, 333, 333, 900, 1000}};

static bool on_threads(const trial *t)
{
    size_t ends[TEST_THREADS + 1];
    const npuq_executor executor = {test_run_parts, ends};

    memcpy(ends, partitions[test_below(COUNT(partitions))], sizeof ends);
    return run_with(t, &executor);
}

static bool has_stride_0(const npuq_tensor *tensor)
{
    for (int d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] > 1 && tensor->strides[d] == 0) {
            return true;
        }
    }
    return false;
}

/* y over the int32 of x: the same bits as with separate memory. */
static bool in_place(const trial *t)
{
    test_call call = t->d.call;
    const test_view *x = &t->d.views[X];
    npuq_call prepared;

    if (!test_works_in_place(call.op) || call.tensors[Y].dtype != NPUQ_FLOAT32) {
        return false;
    }
    call.tensors[Y] = call.tensors[X];
    call.tensors[Y].dtype = NPUQ_FLOAT32;
    if (has_stride_0(&call.tensors[Y])) {
        test_check(test_call_run(&call) == NPUQ_ERROR_LAYOUT);
        return true;
    }
    if (test_one_in(2)) {
        check_ok(test_call_prepare(&prepared, &call));
        for (size_t unit = npuq_call_units(&prepared); unit-- > 0;) {
            npuq_call_run(&prepared, unit, unit + 1);
        }
    } else {
        check_ok(test_call_run(&call));
    }
    void *got = test_allocate(test_count(x->tensor.ndim, x->tensor.shape) * sizeof(float));
    test_view_read(&x->tensor, got);
    test_same(got, t->elements[Y], test_count(x->tensor.ndim, x->tensor.shape) * sizeof(float), "%s, y over x",
              test_case_name());
    test_view_untouched_outside(x);
    test_view_write(&x->tensor, t->elements[X]);
    free(got);
    return true;
}

/* ---- ways: prepared ---------------------------------------------------------------------------------------------- */

/* False if the call cannot be prepared. The tensors that were given are gone afterwards. */
static bool prepare(const trial *t, npuq_call *prepared)
{
    test_call c = t->d.call;

    if (!test_takes_executor(c.op)) {
        return false;
    }
    if (test_finds_ranges(c.op) && c.quant_mode == NPUQ_PER_TENSOR) {
        test_check(test_call_prepare(prepared, &c) != NPUQ_OK);
        return false;
    }
    check_ok(test_call_prepare(prepared, &c));
    memset(&c.tensors, 0xA5, sizeof c.tensors);
    return true;
}

typedef void prepared_way_function(const trial *t, npuq_call *prepared);

static size_t count_changes(const test_view *view, const unsigned char *before)
{
    size_t changes = 0;

    for (size_t i = 0; i < view->size; i++) {
        changes += view->guarded.memory[i] != before[i];
    }
    return changes;
}

/* Rows that no unit divides: those that share scales, or all of a matrix, where several end with fewer of them. */
static size_t count_indivisible_rows(int64_t rows, int64_t sharing, size_t matrices)
{
    return rows == 0 ? 1 : (size_t)(sharing >= rows ? rows : rows % sharing == 0 || matrices == 1 ? sharing : rows);
}

/* Elements that no unit divides. */
static size_t count_indivisible(const test_drawing *d)
{
    const test_call *c = &d->call;
    const size_t columns = d->ndim > 0 ? (size_t)d->shape[d->ndim - 1] : 1;
    const size_t matrices = test_count(d->ndim - 2, d->shape);
    const int axis = c->axis < 0 ? c->axis + d->ndim : c->axis;

    if (test_has(c->op, MXSCALE) && axis < d->ndim - 1) { /* a pair of groups of 64 columns */
        const int64_t n = d->shape[axis];
        const size_t others = test_count(d->ndim - 1, d->shape) / (size_t)n;

        return count_indivisible_rows(n, 2 * c->block, others) * (columns < 64 ? columns : 64);
    }
    if (test_has_option(c->op, OPTION_ROW_BLOCK)) {
        return columns * count_indivisible_rows(d->shape[d->ndim - 2], c->row_block, matrices);
    }
    return test_is_output(c->op, SCALE) || test_is_output(c->op, MIN) || test_has(c->op, MXSCALE) ? columns : 1;
}

/* In random order. y shows that no unit writes more than a unit may have: few bytes stay the same. */
static void one_unit_after_the_other(const trial *t, npuq_call *prepared)
{
    const test_drawing *d = &t->d;
    const size_t elements = test_count(d->ndim, d->shape);
    const size_t row = count_indivisible(d);
    const size_t most = row > 4096 ? row : 4096; /* elements of a unit */
    const test_view *y = &d->views[Y];

    const size_t units = npuq_call_units(prepared);
    const bool counts = d->call.given[Y] && y->tensor.ndim > 0 && units < 50;
    const size_t width = counts ? test_count(y->tensor.ndim, y->tensor.shape) * npuq_dtype_size(y->tensor.dtype) : 0;
    unsigned char *before = test_allocate(y->size);
    size_t *order = test_shuffled(units);

    test_check(units >= (elements + most - 1) / most);
    test_check(!test_finds_ranges(d->call.op) || units <= elements / row);
    for (size_t i = 0; i < units; i++) {
        if (counts) {
            memcpy(before, y->guarded.memory, y->size);
        }
        npuq_call_run(prepared, order[i], order[i] + 1);
        test_check(!counts || count_changes(y, before) <= (uint64_t)most * width / elements);
    }
    free(before);
    free(order);
    check(t);
}

static void several_units_at_once(const trial *t, npuq_call *prepared)
{
    test_run_chunks(prepared);
    check(t);
}

/* Ranges without units write nothing; units may run twice. */
static void no_units_and_half_of_them_again(const trial *t, npuq_call *prepared)
{
    const size_t units = npuq_call_units(prepared);
    const size_t ends[] = {0, 1, units / 2, units, units + 1, SIZE_MAX / 2 + 1, SIZE_MAX};
    for (size_t i = 0; i < COUNT(ends); i++) {
        for (size_t j = 0; j < COUNT(ends); j++) {
            if (ends[i] >= ends[j] || ends[i] >= units) {
                npuq_call_run(prepared, ends[i], ends[j]);
            }
        }
    }
    test_check_outcome(&t->d, NULL);
    test_run_all(prepared);
    npuq_call_run(prepared, units / 2, SIZE_MAX);
    check(t);
}

/* The call and its first copy are gone. */
static void copied_twice(const trial *t, npuq_call *prepared)
{
    npuq_call *copy = test_allocate(sizeof *copy);

    *copy = *prepared;
    memset(prepared, test_one_in(2) ? 0xA5 : 0, sizeof *prepared);
    *prepared = *copy;
    memset(copy, 0x5A, sizeof *copy);
    free(copy);
    test_run_all(prepared);
    check(t);
}

/* After another backend is chosen, a run gives the same results and keeps the choice. Results cannot show which kernels
 * run: all backends give the same bits. */
static void prepared_for_another_backend(const trial *t, npuq_call *prepared)
{
    const npuq_backend chosen = npuq_active_backend();

    for (npuq_backend b = NPUQ_BACKEND_REF; strcmp(npuq_backend_name(b), "unknown") != 0; b++) {
        if (npuq_set_backend(b) == NPUQ_OK) {
            test_run_all(prepared);
            test_check(npuq_active_backend() == b);
            check(t);
        }
    }
    check_ok(npuq_set_backend(chosen));
}

static void run_units(void *argument, size_t begin, size_t end)
{
    npuq_call_run(argument, begin, end);
}

static void units_on_threads(const trial *t, npuq_call *prepared)
{
    size_t ends[TEST_THREADS + 1];

    memcpy(ends, partitions[test_below(COUNT(partitions))], sizeof ends);
    test_run_parts(ends, npuq_call_units(prepared), run_units, prepared);
    check(t);
}

/* Prepared for other memory with other values, run there, and rebound. */
static void rebound(const trial *t, npuq_call *prepared)
{
    test_call elsewhere = t->d.call;
    unsigned char *memory[SLOTS] = {NULL};

    FOR_EACH_GIVEN(&elsewhere, slot)
    {
        const test_view *view = &t->d.views[slot];

        if (test_operand_of(elsewhere.op, slot) >= 0) {
            memory[slot] = test_allocate(view->size);
            memset(memory[slot], 0x3C, view->size);
            elsewhere.tensors[slot].data = memory[slot] + ((unsigned char *)view->tensor.data - view->guarded.memory);
        }
    }
    check_ok(test_call_prepare(prepared, &elsewhere));
    test_run_all(prepared);
    check_ok(test_rebind_all(prepared, &t->d.call));
    test_run_all(prepared);
    check(t);
    for (int slot = 0; slot < SLOTS; slot++) {
        free(memory[slot]);
    }
}

/* Random values, or all of one bad kind. */
static void spoil(const test_view *view)
{
    const size_t size = npuq_dtype_size(view->tensor.dtype);
    const size_t count = test_count(view->tensor.ndim, view->tensor.shape);
    const unsigned kind = (unsigned)test_below(4);
    unsigned char *elements = test_allocate(count * size);

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
    free(elements);
}

/* The results are unspecified, but nothing else is written. */
static bool after_a_change_of_groups_or_words(const trial *t)
{
    const enum slot changed = test_has(t->d.call.op, WORDS) ? WORDS : GROUP_INDEX;
    const test_view *view = &t->d.views[changed];
    npuq_call prepared;

    if (!t->d.call.given[changed] || !prepare(t, &prepared)) {
        return false;
    }
    for (int again = 0; again < 4; again++) {
        spoil(view);
        test_run_all(&prepared);
        memcpy(view->guarded.memory, view->before, view->size);
        FOR_EACH_GIVEN(&t->d.call, slot)
        {
            (test_is_output(t->d.call.op, slot) ? test_view_untouched_outside : test_view_untouched)(&t->d.views[slot]);
        }
    }
    return true;
}

/* ---- ways: in other floating-point states ------------------------------------------------------------------------ */

static fp_state any_state(void)
{
    return state_of(test_below(STATES), test_below(FLAG_SETS));
}

static void check_state(const char *whose, fp_state before, fp_state after)
{
    if (!is_same_state(before, after)) {
        print_error("%s: control %#llx, flags %#llx before; %#llx, %#llx after\n", whose,
                    (unsigned long long)before.control, (unsigned long long)before.flags,
                    (unsigned long long)after.control, (unsigned long long)after.flags);
        fail_msg("%s, %s", test_case_name(), now.way);
    }
}

/* The bytes are those of the usual state, and the caller's state stays. */
static bool run_in_state(const trial *t, fp_state state, const npuq_executor *executor)
{
    const fp_state usual = get_state();
    test_call call = t->d.call;

    call.executor = executor;
    set_state(state);
    const fp_state before = get_state();
    const npuq_status status = test_call_run(&call);
    const fp_state after = get_state();
    set_state(usual);
    check_ok(status);
    check_state("the caller's state", before, after);
    check(t);
    return true;
}

static bool in_other_states(const trial *t)
{
    const int states = test_count(t->d.ndim, t->d.shape) > 100000 ? 1 : 4;

    for (int again = 0; again < states; again++) {
        (void)run_in_state(t, any_state(), NULL);
    }
    return true;
}

/* A thread of the executor, with its own state. */
typedef struct worker {
    test_part all;
    fp_state before;
    fp_state after;
} worker;

static void *work(void *argument)
{
    worker *w = argument;

    set_state(w->before);
    w->before = get_state();
    (void)test_run_part(&w->all);
    w->after = get_state();
    return NULL;
}

/* context: the worker, which does all. */
static void run_on_worker(void *context, size_t count, void (*task)(void *argument, size_t begin, size_t end),
                          void *argument)
{
    worker *w = context;

    w->all = (test_part){task, argument, 0, count};
    if (!test_run_on_thread(work, w)) {
        (void)work(w);
    }
}

/* The caller has one state, the thread that does the work another. */
static bool on_a_thread_in_another_state(const trial *t)
{
    worker w = {.before = any_state()};
    const npuq_executor executor = {run_on_worker, &w};

    (void)run_in_state(t, any_state(), &executor);
    if (w.all.task) {
        check_state("the worker's state", w.before, w.after);
    }
    return true;
}

/* Prepared in one state and run in another. */
static void prepared_in_other_states(const trial *t, npuq_call *prepared)
{
    const fp_state usual = get_state();
    const fp_state states[] = {any_state(), any_state()};
    fp_state before[2];
    fp_state after[2];

    for (int i = 0; i < 2; i++) {
        set_state(states[i]);
        before[i] = get_state();
        if (i == 0) {
            (void)test_call_prepare(prepared, &t->d.call);
        } else {
            npuq_call_run(prepared, 0, SIZE_MAX);
        }
        after[i] = get_state();
        set_state(usual);
    }
    check_state("prepared", before[0], after[0]);
    check_state("run", before[1], after[1]);
    check(t);
}

/* ---- ways: in shards --------------------------------------------------------------------------------------------- */

enum { SHARDS = 4, MOST_ROWS = 16 };

/* The part of a tensor from `begin` on, with the given extent. */
static npuq_tensor slice(const npuq_tensor *tensor, int d, int64_t begin, int64_t extent)
{
    npuq_tensor part = *tensor;

    part.data = (char *)part.data + begin * tensor->strides[d] * (int64_t)npuq_dtype_size(tensor->dtype);
    part.shape[d] = extent;
    return part;
}

/* Rows or columns of the call; ends: room for those of the groups of rows. */
static test_call shard_of(const trial *t, int along, int64_t begin, int64_t extent, int64_t *ends)
{
    test_call c = t->d.call;
    const int64_t packed = along == 1 ? npuq_values_in_word(c.tensors[Y].dtype) : 1;

    c.tensors[X] = slice(&c.tensors[X], along, begin, extent);
    c.tensors[Y] = slice(&c.tensors[Y], along, begin / packed, extent / packed);
    if (along == 1 && c.given[SMOOTH_SCALES]) {
        c.tensors[SMOOTH_SCALES] = slice(&c.tensors[SMOOTH_SCALES], c.tensors[SMOOTH_SCALES].ndim - 1, begin, extent);
    }
    if (along == 0 && c.given[GROUP_INDEX]) {
        for (int64_t e = 0; e < t->d.groups; e++) {
            const int64_t end = t->d.ends[e] - begin;
            ends[e] = end < 0 ? 0 : end > extent ? extent : end;
        }
        c.tensors[GROUP_INDEX] = npuq_vector(ends, NPUQ_INT64, t->d.groups);
    }
    return c;
}

static void slice_rows(test_call *c, enum slot slot, int64_t begin, int64_t extent)
{
    if (c->given[slot] && c->quant_mode == NPUQ_PER_TOKEN) {
        c->tensors[slot] = slice(&c->tensors[slot], 0, begin, extent);
    }
}

static void run_step(test_call c)
{
    check_ok(test_call_run(&c));
}

/* Each shard finds the ranges of its rows or columns; the parameters of all ranges are found once; each shard applies
 * them to its own. */
static void run_in_steps(const trial *t, int along, const int64_t *cuts)
{
    const test_call *c = &t->d.call;
    const bool is_symmetric = !c->given[OFFSET];
    const bool own = along == 0 && c->quant_mode == NPUQ_PER_TOKEN; /* each shard has ranges of its own */
    const int64_t count = c->quant_mode == NPUQ_PER_TOKEN ? t->d.shape[0] : 1;
    float ranges[2][MOST_ROWS];
    float parts[2][MOST_ROWS];
    int64_t ends[TEST_GROUPS];

    for (int64_t i = 0; i < count; i++) {
        ranges[0][i] = INFINITY;
        ranges[1][i] = -INFINITY;
    }
    for (int s = 0; s < SHARDS; s++) {
        test_call step = shard_of(t, along, cuts[s], cuts[s + 1] - cuts[s], ends);
        const int64_t first = own ? cuts[s] : 0;
        const int64_t mine = own ? cuts[s + 1] - cuts[s] : count;

        step.op = TEST_DYNAMIC_QUANT_MIN_MAX;
        step.given[MIN] = step.given[MAX] = true;
        step.tensors[MIN] = npuq_vector(parts[0], NPUQ_FLOAT32, mine);
        step.tensors[MAX] = npuq_vector(parts[1], NPUQ_FLOAT32, mine);
        run_step(step);
        for (int64_t i = 0; i < mine; i++) {
            float *low = &ranges[0][first + i];
            float *high = &ranges[1][first + i];
            const bool is_nan = isnan(*low) || isnan(parts[0][i]);

            *low = is_nan ? NAN : fminf(*low, parts[0][i]);
            *high = is_nan ? NAN : fmaxf(*high, parts[1][i]);
        }
    }
    test_call step = *c;
    step.op = is_symmetric ? TEST_DYNAMIC_QUANT_SYMMETRIC_PARAMS : TEST_DYNAMIC_QUANT_PARAMS;
    step.y_dtype = c->tensors[Y].dtype;
    step.given[MIN] = step.given[MAX] = true;
    step.tensors[MIN] =
        npuq_tensor_contiguous(ranges[0], NPUQ_FLOAT32, c->tensors[SCALE].ndim, c->tensors[SCALE].shape);
    step.tensors[MAX] =
        npuq_tensor_contiguous(ranges[1], NPUQ_FLOAT32, c->tensors[SCALE].ndim, c->tensors[SCALE].shape);
    run_step(step);
    for (int s = 0; s < SHARDS; s++) {
        const int64_t first = cuts[s];
        const int64_t extent = cuts[s + 1] - first;

        step = shard_of(t, along, first, extent, ends);
        step.op = is_symmetric ? TEST_DYNAMIC_QUANT_SYMMETRIC_APPLY : TEST_DYNAMIC_QUANT_APPLY;
        step.given[MIN] = step.given[MAX] = is_symmetric;
        step.tensors[MIN] = npuq_vector(ranges[0] + (own ? first : 0), NPUQ_FLOAT32, own ? extent : count);
        step.tensors[MAX] = npuq_vector(ranges[1] + (own ? first : 0), NPUQ_FLOAT32, own ? extent : count);
        if (own) {
            slice_rows(&step, SCALE, first, extent);
            slice_rows(&step, OFFSET, first, extent);
        }
        run_step(step);
    }
}

/* By docs/sharding.md. Some shards are empty. */
static bool in_shards(const trial *t)
{
    const test_call *c = &t->d.call;
    const bool finds = test_finds_ranges(c->op) && c->given[Y];
    const bool has_steps = !test_has_option(c->op, OPTION_DST_TYPE_MAX);
    const bool in_steps = finds && has_steps && (c->quant_mode == NPUQ_PER_TENSOR || test_one_in(2));
    const int along = in_steps && test_one_in(2);
    const int64_t unit = along == 0 ? 1 : 8; /* of rows or columns: words stay whole */
    int64_t cuts[SHARDS + 1] = {0};
    int64_t ends[TEST_GROUPS];

    if ((!finds && !test_needs_groups(c->op)) || (!has_steps && c->quant_mode == NPUQ_PER_TENSOR) || t->d.ndim != 2 ||
        t->d.shape[0] > MOST_ROWS || t->d.shape[along] % unit != 0 ||
        has_stride_0(&c->tensors[X])) { /* a part of x may not be one element */
        return false;
    }
    for (int s = 1; s <= SHARDS; s++) {
        const int64_t all = t->d.shape[along] / unit;
        cuts[s] = (s == SHARDS ? all : test_between(cuts[s - 1] / unit, all)) * unit;
    }
    if (in_steps) {
        run_in_steps(t, along, cuts);
    }
    for (int s = 0; s < SHARDS && !in_steps; s++) {
        test_call part = shard_of(t, 0, cuts[s], cuts[s + 1] - cuts[s], ends);

        if (finds) {
            slice_rows(&part, SCALE, cuts[s], cuts[s + 1] - cuts[s]);
            slice_rows(&part, OFFSET, cuts[s], cuts[s + 1] - cuts[s]);
        }
        run_step(part);
    }
    check(t);
    return true;
}

static const struct way {
    const char *name;
    way_function *run;
    prepared_way_function *run_prepared; /* in place of run */
    bool sets_state;                     /* of the thread that passes the arguments */
} ways[] = {
    {"on threads", .run = on_threads},
    {"y over x", .run = in_place},
    {"one unit after the other", .run_prepared = one_unit_after_the_other},
    {"several units at once", .run_prepared = several_units_at_once},
    {"half of the units again", .run_prepared = no_units_and_half_of_them_again},
    {"a copy of the copy", .run_prepared = copied_twice},
    {"prepared for another backend", .run_prepared = prepared_for_another_backend},
    {"units on threads", .run_prepared = units_on_threads},
    {"rebound", .run_prepared = rebound},
    {"after a change of groups or words", .run = after_a_change_of_groups_or_words},
    {"in other floating-point states", .run = in_other_states, .sets_state = true},
    {"on a thread in another state", .run = on_a_thread_in_another_state, .sets_state = true},
    {"prepared in other states", .run_prepared = prepared_in_other_states, .sets_state = true},
    {"in shards", .run = in_shards},
};

/* ---- drawn calls ------------------------------------------------------------------------------------------------- */

/* Data under which another rounding mode or a flush to zero shows. */
enum data {
    PLAIN, /* ties and full significands */
    TINY,  /* subnormals, times large numbers or divided by subnormals */
};

static enum data data;

/* Of the size of a quantised value; many halves, many with a full significand. */
static float plain(void)
{
    return test_one_in(4) ? (float)test_between(-500, 500) * 0.5f : (float)test_between(-0x7FFFFF, 0x7FFFFF) / 32768;
}

/* Around 1, often 1. */
static float factor(void)
{
    return test_one_in(4) ? 1.0f : (float)test_between(0x7FFFFF, 0x17FFFFF) / 0x1000000;
}

/* An operator divides by the argument, or its products with integers are subnormal. */
static bool is_divisor(const test_call *call, enum slot slot)
{
    return (slot == SCALES && call->div_mode) || slot == WEIGHT_SCALE || slot == MAX ||
           (slot == SCALE && !test_needs_groups(call->op));
}

static void fill(const test_call *call, enum slot slot, void *elements, npuq_dtype dtype, size_t count)
{
    const bool tiny = data == TINY;

    test_fill(elements, dtype, count, true);
    for (size_t i = 0; test_is_float(dtype) && i < count; i++) {
        const bool is_offset = slot == ZERO_POINTS || slot == OFFSET || slot == BIAS;
        const float value = slot == X                ? plain() * (tiny ? 4e-41f : 1)
                            : is_offset              ? plain() / 8 * (tiny ? 0 : 1)
                            : is_divisor(call, slot) ? factor() * (tiny ? 1e-40f : 1)
                                                     : factor() * (tiny ? 2e38f : 1);
        const uint16_t half = test_to_half(value, dtype);

        memcpy((unsigned char *)elements + i * npuq_dtype_size(dtype),
               dtype == NPUQ_FLOAT32 ? (const void *)&value : &half, npuq_dtype_size(dtype));
    }
}

/* A kind of drawings sets what is not drawn: contiguous matrices, if it says no more. It returns false if it is not for
 * the operator. */
typedef bool draw_function(test_drawing *d);

static bool draw_matrix(test_drawing *d, int64_t rows, int64_t cols)
{
    d->has_shape = true;
    d->ndim = 2;
    d->shape[0] = rows;
    d->shape[1] = cols;
    return true;
}

/* Mostly small shapes. Sometimes a last dimension longer than the library's buffers, or transposed rows and columns of
 * more than one block. */
static bool draw_any(test_drawing *d)
{
    const test_argument *x = &test_arguments[d->call.op][test_has(d->call.op, X) ? X : MIN];

    d->all_contiguous = test_one_in(3);
    d->large = test_one_in(4);
    d->has_shape = !test_one_in(3);
    d->ndim = (int)test_between(x->least_ndim, x->most_ndim);
    for (int i = 0; i < d->ndim; i++) {
        d->shape[i] = test_one_in(6) ? 1 : test_between(1, d->ndim <= 2 ? 70 : d->ndim <= 4 ? 7 : 3);
    }
    if (d->ndim > 0 && test_one_in(12)) { /* also with one column in the last unit */
        d->shape[d->ndim - 1] = test_one_in(2) ? test_between(1000, 5000) : 2048 * test_between(1, 2) + 1;
    } else if (d->ndim == 2 && test_one_in(8)) {
        d->shape[0] = test_between(300, 3000);
    } else if (d->ndim == 2 && test_one_in(8)) {
        d->shape[0] = test_between(60, 300);
        d->shape[1] = test_between(60, 600);
    }
    return true;
}

/* The operators on rows of x. */
static bool is_whole(enum test_operator op)
{
#define ONE_MORE(name, NAME, EXECUTOR) +1
    return test_takes_executor(op) && op < 0 EACH_OPERATOR(ONE_MORE);
}

/* Rows without gaps, which the library joins, and some that are too long or too few. Or with gaps, also of a power of
 * two of columns: kernels must not take them as runs of one row. */
static bool draw_short_rows(test_drawing *d)
{
    const int64_t n = test_one_in(4)   ? test_between(1, 160)
                      : test_one_in(4) ? (int64_t)1 << test_below(7)
                                       : test_between(1, 40);

    d->all_contiguous = !test_one_in(4);
    return draw_matrix(d, test_one_in(4) ? test_between(1, 4000 / n + 1) : test_between(1, 140), n) &&
           is_whole(d->call.op);
}

/* At the limits of the fast path and of its buffers, and rows that are runs of one row for the kernels. */
static bool draw_dense_rows(test_drawing *d)
{
    static const int64_t shapes[][2] = {{1, 4096}, {1, 4104}, {1, 16384}, {2, 16384}, {3, 9000},
                                        {600, 48}, {70, 32},  {70, 96},   {33, 320}};
    const int64_t *shape = shapes[(size_t)now.number % COUNT(shapes)];

    return draw_matrix(d, shape[0], shape[1]) && is_whole(d->call.op);
}

/* Rows so long that an executor gets parts of rows. */
static bool draw_long_rows(test_drawing *d)
{
    d->half_floats = now.number % 3 == 0; /* finite products differ from group to group */
    d->all_contiguous = test_one_in(3);
    return draw_matrix(d, 4, 4 * 65536 + 1032) && test_is_dynamic(d->call.op) &&
           (test_is_optional(d->call.op, GROUP_INDEX) && now.number < (is_whole(d->call.op) ? 18 : 3));
}

/* Many units of work, and larger than the caches: the kernels use non-temporal stores and prefetch. */
static bool draw_large(test_drawing *d)
{
    d->all_contiguous = now.number > 0;
    return draw_matrix(d, 2100, 4104) && is_whole(d->call.op);
}

/* More rows with scales of their own than the library converts at a time. If their columns lie apart, the parameters
 * are spread by column, and a tile may begin at the second one. Or the rows lie apart. */
static bool draw_many_rows(test_drawing *d)
{
    d->all_contiguous = false;
    return draw_matrix(d, test_one_in(2) ? 9000 : 20000, 3) &&
           (test_has(d->call.op, ACTIVATION_SCALE) || test_has(d->call.op, SCALES));
}

/* Rows of a whole number of units of work, or of slightly less or more. */
static bool draw_wide(test_drawing *d)
{
    static const int64_t widths[] = {2 * 32768, 2 * 32768 - 8, 3 * 4096, 3 * 4096 + 64, 32768 + 72};

    d->all_contiguous = false;
    return draw_matrix(d, 3, widths[(size_t)now.number % COUNT(widths)]) && is_whole(d->call.op);
}

/* Several units of an executor and of a prepared call. */
static bool draw_units(test_drawing *d)
{
    d->all_contiguous = test_one_in(2);
    return draw_matrix(d, 150, 1608);
}

static bool draw_shards(test_drawing *d)
{
    d->all_contiguous = test_one_in(2);
    return draw_matrix(d, test_between(1, 12), 8 * test_between(1, 13)) &&
           (test_needs_groups(d->call.op) || (is_whole(d->call.op) && test_finds_ranges(d->call.op)));
}

/* More of draw_any(), for operators of many options: so that all combinations of types, options and ranks occur. */
static const int more_rounds[TEST_OPERATORS] = {
    [TEST_QUANTIZE] = 8000,
    [TEST_DYNAMIC_QUANT_ASYMMETRIC] = 1100,
    [TEST_DYNAMIC_QUANT] = 1100,
    [TEST_DYNAMIC_BLOCK_QUANT] = 2400,
};

static const struct kind {
    const char *name;
    draw_function *draw;
    int rounds;        /* for each operator */
    way_function *way; /* besides at_once(); null: any */
} kinds[] = {
    {"any", draw_any, 1600, NULL},
    {"short rows", draw_short_rows, 1000, NULL},
    {"dense rows", draw_dense_rows, 216, NULL},
    {"long rows", draw_long_rows, 18, NULL},
    {"large", draw_large, 3, NULL},
    {"many rows", draw_many_rows, 40, NULL},
    {"wide", draw_wide, 20, NULL},
    {"units", draw_units, 20, NULL},
    {"shards", draw_shards, 400, in_shards},
};

/* False if there is no such way for the call. The first way is one for all calls. */
static bool run_way(const trial *t, const struct way *way)
{
    npuq_call prepared;

    now.way = way->name;
    if (way->sets_state && test_raises_flags(&t->d.call)) {
        return false;
    }
    if (way->run) {
        return way->run(t);
    }
    if (!prepare(t, &prepared)) {
        return false;
    }
    way->run_prepared(t, &prepared);
    return true;
}

static void check_every_backend(const trial *t, way_function *way)
{
    FOR_EACH_BACKEND()
    {
        now.way = "at once";
        (void)at_once(t);
        now.way = "in a given way";
        if (way && way(t)) {
            continue;
        }
        for (size_t i = test_below(COUNT(ways)); !run_way(t, &ways[i]); i = (i + 1) % COUNT(ways)) {
        }
    }
}

static void test_kind(void **state)
{
    const struct kind *kind = *state;

    now.kind = kind->name;
    for (now.op = 0; now.op < TEST_OPERATORS; now.op++) {
        const int rounds = test_rounds(kind->rounds + (kind->draw == draw_any ? more_rounds[now.op] : 0));

        for (now.number = 0; now.number < rounds; now.number++) {
            test_drawing d = test_undrawn(now.op);

            test_begin_case((size_t)(kind - kinds));
            d.all_contiguous = true;
            data = test_one_in(2) ? PLAIN : TINY;
            d.fill = test_one_in(3) ? fill : NULL;
            if (!kind->draw(&d)) {
                break;
            }
            test_draw_elements(&d);
            trial t = try_drawing(d);
            check_every_backend(&t, kind->way);
            free_trial(&t);
        }
    }
}

/* ---- constructed calls ------------------------------------------------------------------------------------------- */

/* A part without elements has the range that changes no other. */
static void check_empty_parts(void)
{
    const int64_t no_rows[] = {0, 5};
    const int64_t no_columns[] = {3, 0};
    const int64_t rows = 3;
    const int64_t one = 1;
    const npuq_tensor x[] = {npuq_tensor_contiguous(NULL, NPUQ_FLOAT32, 2, no_rows),
                             npuq_tensor_contiguous(NULL, NPUQ_FLOAT32, 2, no_columns)};

    for (int i = 0; i < 3; i++) {
        float min[3] = {1, 1, 1};
        float max[3] = {1, 1, 1};
        const npuq_quant_mode mode = i < 2 ? NPUQ_PER_TENSOR : NPUQ_PER_TOKEN;
        const npuq_tensor min_view = npuq_tensor_contiguous(min, NPUQ_FLOAT32, 1, i < 2 ? &one : &rows);
        const npuq_tensor max_view = npuq_tensor_contiguous(max, NPUQ_FLOAT32, 1, i < 2 ? &one : &rows);

        check_ok(npuq_dynamic_quant_min_max(&x[i > 0], NULL, NULL, mode, &min_view, &max_view, NULL));
        for (int j = 0; j < (i < 2 ? 1 : 3); j++) {
            assert_true(min[j] == INFINITY && max[j] == -INFINITY);
        }
    }
}

/* The extents besides a 0 may be any, even with a product beyond all limits. */
static void check_empty_and_huge(void)
{
    for (int i = 0; i < 8 * TEST_OPERATORS; i++) {
        now.op = (enum test_operator)(i / 8);
        test_drawing d = test_undrawn(now.op);
        const test_argument *x = &test_arguments[now.op][test_has(now.op, X) ? X : MIN];

        d.all_contiguous = true;
        d.has_shape = true;
        d.ndim = 4;
        memcpy(d.shape, (const int64_t[]){INT64_C(1) << 62, 8, 0, 4}, 4 * sizeof *d.shape);
        if (x->most_ndim < d.ndim || test_has(d.call.op, SCALES)) { /* an axis has too many scales */
            continue;
        }
        test_draw_call(&d);
        if (d.call.quant_mode == NPUQ_PER_TOKEN) {
            check_ok(test_call_run(&d.call));
            test_check_outcome(&d, NULL);
        }
        test_free_drawing(&d);
    }
}

/* Each row is one element in memory. With a 32-bit size_t, there are more elements than size_t counts. */
static void check_broadcast_rows(void)
{
    const int64_t shape[] = {2, 1 << 22};
    float values[1024] = {5, 7}; /* room for the whole span of x */
    float min[2] = {0};
    float max[2] = {0};
    npuq_tensor x = npuq_tensor_contiguous(values, NPUQ_FLOAT32, 2, shape);
    npuq_tensor min_view = npuq_vector(min, NPUQ_FLOAT32, 2);
    npuq_tensor max_view = npuq_vector(max, NPUQ_FLOAT32, 2);

    x.strides[0] = 1;
    x.strides[1] = 0;
    check_ok(npuq_dynamic_quant_min_max(&x, NULL, NULL, NPUQ_PER_TOKEN, &min_view, &max_view, NULL));
    assert_true(min[0] == 5 && max[0] == 5 && min[1] == 7 && max[1] == 7);
    if (sizeof(void *) < 8) {
        x.shape[0] = 1024;
        min_view.shape[0] = max_view.shape[0] = 1;
        assert_int_equal(npuq_dynamic_quant_min_max(&x, NULL, NULL, NPUQ_PER_TENSOR, &min_view, &max_view, NULL),
                         NPUQ_ERROR_LAYOUT);
        assert_non_null(strstr(npuq_last_error(), "dynamic_quant_min_max: x: has 4294967296 elements"));
    }
}

/* Frees the drawing. */
static void check_drawing(test_drawing d)
{
    trial t = try_drawing(d);

    now.op = d.call.op;
    (void)run_with(&t, NULL);
    free_trial(&t);
}

enum { UNCERTAIN_COLS = 75 };

static void fill_uncertain(const test_call *call, enum slot slot, void *elements, npuq_dtype dtype, size_t count)
{
    float *values = elements;

    (void)call;
    (void)dtype;
    for (size_t i = 0; i < count; i++) {
        values[i] = slot == SCALES                ? (i % 2 == 0 ? 1.0f : 0x1p-140f)
                    : i / UNCERTAIN_COLS % 2 == 0 ? NAN
                                                  : (float)(i % 7);
    }
}

/* Rows of NaN without a certain store, between rows whose scales have no inverse: the memory of kernels from row to row
 * stays bounded. */
static void check_uncertain_rows(void)
{
    static const int64_t shape[] = {300, UNCERTAIN_COLS};
    test_drawing d = test_undrawn(TEST_QUANTIZE);

    d.all_contiguous = true;
    d.fill = fill_uncertain;
    d.call.div_mode = true;
    test_add_view(&d, X, NPUQ_FLOAT32, 2, shape);
    test_add_view(&d, SCALES, NPUQ_FLOAT32, 1, shape);
    test_add_view(&d, Y, NPUQ_INT8, 2, shape);
    check_drawing(d);
}

/* Rows of words as far apart as the other tensor's elements: the library must not join such rows. */
static void check_words_far_apart(void)
{
    static const int64_t floats[] = {3, 16};
    static const int64_t words[] = {3, 8 * 16};
    static const int64_t one = 1;

    for (int i = 0; i < 8; i++) { /* with other values */
        const bool reads = i % 2;
        const enum slot packed = reads ? X : Y;
        test_drawing d = test_undrawn(reads ? TEST_ANTI_QUANT : TEST_QUANTIZE);

        d.all_contiguous = true;
        d.call.axis = -1;
        test_add_view(&d, packed, NPUQ_QUINT4X2, 2, words);
        d.views[packed].tensor.shape[1] = d.call.tensors[packed].shape[1] = 2;
        test_add_view(&d, reads ? Y : X, NPUQ_FLOAT32, 2, floats);
        test_add_view(&d, reads ? SCALE : SCALES, NPUQ_FLOAT32, 1, &one);
        check_drawing(d);
    }
}

/* A subnormal min_scale, which raises no flag and does not trap, neither in a call nor in the message of a refusal.
 * Both are constants: on x87, to load a variable raises the flag. */
static void check_subnormal_min_scale(void)
{
    float x[16] = {1};
    int8_t y[16];
    float scale[2];
    const npuq_tensor x_view = npuq_vector(x, NPUQ_FLOAT32, 16);
    const npuq_tensor y_view = npuq_vector(y, NPUQ_INT8, 16);
    const npuq_tensor scale_view = npuq_vector(scale, NPUQ_FLOAT32, 2);
    const fp_state usual = get_state();

    for (size_t i = 0; i < STATES; i++) {
        set_state(state_of(i, i));
        const fp_state before = get_state();
        const npuq_status done = npuq_dynamic_block_quant(&x_view, 8, 0x1p-140f, &y_view, &scale_view, NULL);
        const npuq_status refused = npuq_dynamic_block_quant(&x_view, 8, -0x1p-140f, &y_view, &scale_view, NULL);
        const fp_state after = get_state();
        set_state(usual);
        assert_int_equal(done, NPUQ_OK);
        assert_int_equal(refused, NPUQ_ERROR_ARGUMENT);
        assert_non_null(strstr(npuq_last_error(), "min_scale: is -7.17")); /* printf() may round as x87 does */
        check_state("a subnormal min_scale", before, after);
    }
}

/* Groups of half a row of 32: a vector of halves of AVX-512 is two of them. */
static void check_groups_of_16(void)
{
    for (int again = 0; again < 40; again++) {
        test_drawing d = test_undrawn(TEST_DYNAMIC_MX_QUANT);

        d.all_contiguous = true;
        d.has_shape = true;
        d.ndim = 2;
        d.shape[0] = 40;
        d.shape[1] = 16;
        test_draw_call(&d);
        trial t = try_drawing(d);

        at_once(&t);
        free_trial(&t);
    }
}

static void test_constructed(void **unused)
{
    (void)unused;
    now = (test_case){.kind = "constructed", .way = "at once"};
    FOR_EACH_BACKEND()
    {
        print_message("# %s\n", npuq_backend_name(npuq_active_backend()));
        check_empty_parts();
        check_empty_and_huge();
        check_broadcast_rows();
        check_uncertain_rows();
        check_words_far_apart();
        check_subnormal_min_scale();
        check_groups_of_16();
    }
}

int main(void)
{
    struct CMUnitTest tests[COUNT(kinds) + 1] = {cmocka_unit_test(test_constructed)};

    for (size_t i = 0; i < COUNT(kinds); i++) {
        tests[i + 1] =
            (struct CMUnitTest){.name = kinds[i].name, .test_func = test_kind, .initial_state = (void *)&kinds[i]};
    }
    test_seed();
    return cmocka_run_group_tests_name("operators", tests, NULL, NULL);
}
