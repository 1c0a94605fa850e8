/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <stdio.h>
#include <string.h>

static npuq_status fail_call(const char *op)
{
    return npuq_fail(NPUQ_ERROR_NULL, op, "call", "is null; expected an npuq_call");
}

/* ---- where arguments lie ----------------------------------------------------------------------------------------- */

static void add_steps(npuq_span *span, ptrdiff_t stride, size_t count)
{
    const uintptr_t bytes = (uintptr_t)stride * (count - 1);

    if (stride < 0) {
        span->first += bytes;
    } else {
        span->last += bytes;
    }
}

/* Of argument i, in a row of an index space. */
static size_t count_words_of_row(const npuq_plan *plan, size_t i)
{
    const npuq_space *space = &plan->area.space;
    const size_t cols = npuq_count_columns(space);

    switch (plan->signature->arguments[i].shape) {
    case NPUQ_SHAPE_OF_BLOCKS:
    case NPUQ_SHAPE_OF_ROW_BLOCKS: return npuq_divide_up(cols, plan->block);
    case NPUQ_SHAPE_OF_PAIRS: return npuq_divide_up(cols, plan->block > 1 ? 2 * plan->block : 1);
    default: return npuq_count_operand_words(space, (int)i, cols);
    }
}

/* The bytes of argument i, which has elements. Sets *data to the address that the caller gave. */
static NPUQ_NOT_INLINED npuq_span find_span(const npuq_plan *plan, size_t i, uintptr_t *data)
{
    const bool is_group_index = i == plan->operands;
    const bool is_flat = plan->way != NPUQ_IN_SPACE;
    const npuq_tile *all = &plan->area.all;
    const npuq_space *space = &plan->area.space;
    const char *begin = is_group_index ? plan->groups.ends : is_flat ? all->places[i].data : space->data[i];
    const uintptr_t here = (uintptr_t)begin;
    const size_t size = plan->sizes[i];
    npuq_span span = {here, here + (size - 1), size};

    if (is_group_index) {
        add_steps(&span, plan->groups.stride, (size_t)plan->groups.count);
    } else if (is_flat) {
        add_steps(&span, all->places[i].row_stride, all->rows);
        add_steps(&span, all->places[i].col_stride,
                  i <= NPUQ_AT_Y ? npuq_count_words(plan->setup.words[i], all->cols) : all->cols);
    } else {
        const int last = space->ndim - 1;

        for (int d = 0; d < last; d++) {
            const size_t run = i > NPUQ_AT_Y && d == last - 1 ? space->run_rows : 1;

            add_steps(&span, space->strides[d][i], npuq_divide_up(space->extents[d], run));
        }
        add_steps(&span, space->strides[last][i], count_words_of_row(plan, i));
        if (plan->signature->arguments[i].shape == NPUQ_SHAPE_OF_PAIRS) {
            add_steps(&span, plan->pair_stride, 2);
        }
    }
    if (i == NPUQ_AT_GROUPED && plan->groups.ends) {
        add_steps(&span, plan->group_stride, (size_t)plan->groups.count);
    }
    *data = i <= NPUQ_AT_Y          ? (uintptr_t)plan->data[i]
            : plan->turned >> i & 1 ? span.first + (span.last - (size - 1) - here)
                                    : here;
    return span;
}

/* A call that does nothing has no operands, but its arguments with elements keep their bounds: three points of each
 * view, at both ends and at data. */
static void add_ends(npuq_plan *plan, const npuq_arguments *arguments)
{
    npuq_space *space = &plan->area.space;

    assert(plan->way == NPUQ_IN_SPACE && arguments->signature->count <= NPUQ_MOST_OPERANDS);
    plan->operands = (uint8_t)arguments->signature->count;
    space->ndim = 3;
    space->extents[0] = space->extents[1] = 2;
    space->extents[2] = 1;
    for (size_t i = 0; i < plan->operands; i++) {
        if (arguments->used >> i & 1) {
            const npuq_span *span = &arguments->spans[i];
            const uintptr_t data = (uintptr_t)arguments->tensors[i]->data;

            space->data[i] = arguments->tensors[i]->data;
            space->strides[0][i] = (ptrdiff_t)(span->first - data);
            space->strides[1][i] = (ptrdiff_t)(span->last - (span->element - 1) - data);
            space->strides[2][i] = 0;
        }
    }
}

/* What a prepared call keeps for npuq_call_rebind(). The rest is found in its area. */
static void note_arguments(npuq_plan *plan, const npuq_arguments *arguments)
{
    plan->signature = arguments->signature;
    plan->present = (uint8_t)arguments->present;
    plan->turned = 0;
    if (plan->units.count == 0) {
        add_ends(plan, arguments);
    }
    for (size_t i = 0; i < plan->signature->count; i++) {
        plan->sizes[i] = 0;
        if (arguments->used >> i & 1) {
            char *given = arguments->tensors[i]->data;
            uintptr_t data;

            plan->sizes[i] = (uint8_t)arguments->spans[i].element;
            if (i <= NPUQ_AT_Y) {
                plan->data[i] = given;
            } else {
                (void)find_span(plan, i, &data);
                plan->turned |= (uint8_t)((data != (uintptr_t)given) << i);
            }
            assert(find_span(plan, i, &data).first == arguments->spans[i].first);
            assert(find_span(plan, i, &data).last == arguments->spans[i].last && data == (uintptr_t)given);
        }
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

npuq_status npuq_prepare_operator(npuq_call *call, const npuq_operator *op, const npuq_tensor *const *tensors,
                                  const void *options)
{
    npuq_arguments arguments;
    npuq_plan plan;
    npuq_status status;

    if (!call) {
        return fail_call(op->signature.op);
    }
    plan.compute = op->compute;
    arguments.small = 0;
    arguments.has_executor = false;
    if ((status = npuq_check_arguments(&arguments, &op->signature, tensors)) != NPUQ_OK ||
        (status = op->check(&arguments, options)) != NPUQ_OK || (status = npuq_check_layouts(&arguments)) != NPUQ_OK ||
        (status = op->plan(&plan, &arguments, options)) != NPUQ_OK) {
        return status;
    }
    note_arguments(&plan, &arguments);
    memcpy(call->opaque, &plan, sizeof plan);
    return NPUQ_OK;
}

/* The caller copies calls as integers; here they are structures. A compiler that sees both must not exchange the
 * accesses. Plain C cannot say so: there, link the caller without optimisation at link time. */
static const npuq_plan *find_plan(const npuq_call *call)
{
    const void *plan = call->opaque;

#ifndef NPUQ_PLAIN_C
    __asm__ volatile("" : "+r"(plan) : : "memory");
#endif
    return plan;
}

size_t npuq_call_units(const npuq_call *call)
{
    return find_plan(call)->units.count;
}

void npuq_call_run(const npuq_call *call, size_t begin, size_t end)
{
    const npuq_plan *plan = find_plan(call);

    end = npuq_smaller(end, plan->units.count);
    if (begin < end && plan->way == NPUQ_ONE_TILE) {
        const npuq_fp_state caller = npuq_fp_enter();

        plan->compute(plan, &plan->area.all);
        npuq_fp_leave(&caller);
    } else if (begin < end) {
        npuq_run_units(plan, begin, end);
    }
}

static bool is_in(const npuq_plan *plan, size_t i, const npuq_span *span)
{
    uintptr_t data;
    const npuq_span lies_in = find_span(plan, i, &data);

    return npuq_spans_meet(span, &lies_in);
}

/* Whether data could be where argument i lies: NPUQ_OK, or why not. Sets *from to where it lies. */
static npuq_status check_bound(const npuq_plan *plan, size_t i, const char *data, uintptr_t *from)
{
    const npuq_argument *arguments = plan->signature->arguments;
    const char *op = plan->signature->op;
    const uintptr_t address = (uintptr_t)data;
    const npuq_span now = find_span(plan, i, from);
    const npuq_span span = {address - (*from - now.first), address + (now.last - *from), now.element};

    const npuq_status status = npuq_check_data(op, arguments[i].name, data, plan->sizes[i]);

    if (status != NPUQ_OK) {
        return status;
    }
    if (span.first > address || address > span.last) {
        return npuq_fail(NPUQ_ERROR_LAYOUT, op, arguments[i].name,
                         "reaches beyond the address space; expected every element within it");
    }
    for (size_t j = 0; j < plan->signature->count; j++) {
        if (j != i && plan->sizes[j] > 0 && (arguments[i].role == NPUQ_OUTPUT || arguments[j].role == NPUQ_OUTPUT) &&
            is_in(plan, j, &span)) {
            return npuq_fail(NPUQ_ERROR_LAYOUT, op, arguments[i].name,
                             "would meet %s, gaps between elements included; expected memory apart, or that the call "
                             "is prepared anew",
                             arguments[j].name);
        }
    }
    return NPUQ_OK;
}

static npuq_status fail_operand(const npuq_plan *plan, npuq_operand operand)
{
    static const char *const names[] = {[NPUQ_OPERAND_X] = "X",
                                        [NPUQ_OPERAND_Y] = "Y",
                                        [NPUQ_OPERAND_SCALE] = "SCALE",
                                        [NPUQ_OPERAND_OFFSET] = "OFFSET",
                                        [NPUQ_OPERAND_SMOOTH] = "SMOOTH",
                                        [NPUQ_OPERAND_BIAS] = "BIAS",
                                        [NPUQ_OPERAND_ROW_SCALE] = "ROW_SCALE"};
    const size_t count = sizeof names / sizeof names[0];
    char expected[64] = "";

    for (size_t i = 0; i < plan->signature->count; i++) {
        const int of = plan->signature->arguments[i].operand;

        if ((plan->present >> i & 1) && of != NPUQ_FIXED) {
            (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected), " %s", names[of]);
        }
    }
    return npuq_fail(NPUQ_ERROR_ARGUMENT, plan->signature->op, "operand",
                     "is %s (%d); expected one with which the call was prepared:%s",
                     (unsigned)operand < count ? names[operand] : "unknown", (int)operand, expected);
}

npuq_status npuq_call_rebind(npuq_call *call, npuq_operand operand, const void *data)
{
    char *to = (char *)(uintptr_t)data;
    size_t i = 0;
    uintptr_t from;
    npuq_status status;

    if (!call) {
        return fail_call("call_rebind");
    }
    const npuq_plan *plan = find_plan(call);

    while (i < plan->signature->count && ((int)operand == NPUQ_FIXED || !(plan->present >> i & 1) ||
                                          plan->signature->arguments[i].operand != (int)operand)) {
        i++;
    }
    if (i == plan->signature->count) {
        return fail_operand(plan, operand);
    }
    if (plan->sizes[i] == 0) { /* no elements, no data */
        return NPUQ_OK;
    }
    if (i <= NPUQ_AT_Y && plan->sizes[NPUQ_AT_X] > 0 && plan->sizes[NPUQ_AT_Y] > 0 &&
        plan->data[NPUQ_AT_X] == plan->data[NPUQ_AT_Y]) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, plan->signature->op, plan->signature->arguments[i].name,
                         i == NPUQ_AT_X ? "lies under y; expected that the call is prepared anew"
                                        : "is written over x; expected that the call is prepared anew");
    }
    if ((status = check_bound(plan, i, to, &from)) == NPUQ_OK) {
        char *const opaque = (char *)call->opaque;
        const size_t slot = plan->way != NPUQ_IN_SPACE ? offsetof(npuq_plan, area.all.places) + i * sizeof(npuq_place)
                                                       : offsetof(npuq_plan, area.space.data) + i * sizeof(char *);
        char *here;

        memcpy((void *)&here, opaque + slot, sizeof here);
        here = (char *)((uintptr_t)here - from + (uintptr_t)to); /* of addresses: one of them may be 0 */
        memcpy(opaque + slot, (const void *)&here, sizeof here);
        if (i <= NPUQ_AT_Y) {
            memcpy(opaque + offsetof(npuq_plan, data) + i * sizeof to, (const void *)&to, sizeof to);
        }
    }
    return status;
}
