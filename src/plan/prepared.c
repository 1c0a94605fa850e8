/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <stdio.h>
#include <string.h>

static npuq_status fail_call(const char *op)
{
    return npuq_fail(NPUQ_ERROR_NULL, op, "call", "is null; expected an npuq_call");
}

npuq_status npuq_prepare_operator(npuq_call *call, const npuq_operator *op, const npuq_tensor *const *tensors,
                                  const void *options)
{
    npuq_arguments arguments;
    npuq_plan plan;
    npuq_status status;

    if (!call) {
        return fail_call(op->signature.op);
    }
    arguments.is_prepared = true;
    arguments.has_executor = false;
    if ((status = npuq_check_arguments(&arguments, &op->signature, tensors)) != NPUQ_OK ||
        (status = op->check(&arguments, options)) != NPUQ_OK || (status = npuq_check_layouts(&arguments)) != NPUQ_OK ||
        (status = op->plan(&plan, &arguments, options)) != NPUQ_OK) {
        return status;
    }
    plan.compute = op->compute;
    plan.signature = &op->signature;
    plan.present = (uint8_t)arguments.present;
    for (size_t i = 0; i < op->signature.count; i++) {
        const npuq_span *span = &arguments.spans[i];

        plan.sizes[i] = 0;
        if (arguments.used >> i & 1) {
            const uintptr_t data = (uintptr_t)tensors[i]->data;

            plan.bounds[i] = (npuq_bound){tensors[i]->data, data - span->first, span->last - data};
            plan.sizes[i] = (uint8_t)span->element;
        }
    }
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
    if (begin < end) {
        npuq_run_units(plan, begin, end);
    }
}

/* Whether data could be where argument i lies: NPUQ_OK, or why not. */
static npuq_status check_bound(const npuq_plan *plan, size_t i, const char *data)
{
    const npuq_argument *arguments = plan->signature->arguments;
    const char *op = plan->signature->op;
    const npuq_bound *bound = &plan->bounds[i];
    const uintptr_t address = (uintptr_t)data;
    const npuq_span span = {address - bound->below, address + bound->above, plan->sizes[i]};

    const npuq_status status = npuq_check_data(op, arguments[i].name, data, plan->sizes[i]);

    if (status != NPUQ_OK) {
        return status;
    }
    if (bound->below > address || bound->above > UINTPTR_MAX - address) {
        return npuq_fail(NPUQ_ERROR_LAYOUT, op, arguments[i].name,
                         "reaches beyond the address space; expected every element within it");
    }
    for (size_t j = 0; j < plan->signature->count; j++) {
        const uintptr_t other = (uintptr_t)plan->bounds[j].data;
        const npuq_span others = {other - plan->bounds[j].below, other + plan->bounds[j].above, plan->sizes[j]};

        if (j != i && plan->sizes[j] > 0 && (arguments[i].role == NPUQ_OUTPUT || arguments[j].role == NPUQ_OUTPUT) &&
            npuq_spans_meet(&span, &others)) {
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
        plan->bounds[NPUQ_AT_X].data == plan->bounds[NPUQ_AT_Y].data) {
        return npuq_fail(NPUQ_ERROR_ARGUMENT, plan->signature->op, plan->signature->arguments[i].name,
                         i == NPUQ_AT_X ? "lies under y; expected that the call is prepared anew"
                                        : "is written over x; expected that the call is prepared anew");
    }
    if ((status = check_bound(plan, i, to)) == NPUQ_OK) {
        char *const opaque = (char *)call->opaque;
        const char *from = plan->bounds[i].data;
        const size_t slot = plan->way != NPUQ_IN_SPACE ? offsetof(npuq_plan, area.all.places) + i * sizeof(npuq_place)
                                                       : offsetof(npuq_plan, area.space.data) + i * sizeof(char *);
        char *here;

        memcpy(opaque + offsetof(npuq_plan, bounds) + i * sizeof(npuq_bound), (const void *)&to, sizeof to);
        memcpy((void *)&here, opaque + slot, sizeof here);         /* which may point to another end of the view */
        here = (char *)((uintptr_t)to + (uintptr_t)(here - from)); /* of addresses: one of them may be 0 */
        memcpy(opaque + slot, (const void *)&here, sizeof here);
    }
    return status;
}
