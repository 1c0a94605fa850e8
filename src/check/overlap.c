/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two indices meet where a sum of strides times index differences is a given number: a linear Diophantine equation in
 * bounded unknowns. The search takes the largest stride first. The reach of the smaller ones leaves few values to try:
 * one or two for any layout made by slicing and permuting.
 */
#include "overlap.h"

enum { MAX_TERMS = 2 * NPUQ_MAX_NDIM + 2, MAX_STEPS = 1 << 14 };

/* step * n, for one n in 0..most */
typedef struct term {
    uint64_t step;
    uint64_t most;
} term;

typedef struct equation {
    int count;
    int steps_left;
    term terms[MAX_TERMS];         /* steps falling, all different, none 0 */
    uint64_t reach[MAX_TERMS + 1]; /* the largest sum of terms[i], terms[i + 1], ... */
} equation;

/* Sums stay below 2^64: they are at most the sum of two spans, or twice one, and a span is at most PTRDIFF_MAX. */
static void add_term(equation *e, uint64_t step, uint64_t most)
{
    int at = 0;

    if (most == 0) {
        return;
    }
    while (at < e->count && e->terms[at].step > step) {
        at++;
    }
    if (at < e->count && e->terms[at].step == step) {
        e->terms[at].most += most;
        return;
    }
    for (int i = e->count++; i > at; i--) {
        e->terms[i] = e->terms[i - 1];
    }
    e->terms[at] = (term){step, most};
}

/* Whether terms[i], terms[i + 1], ... can sum to target. */
static npuq_overlap search(equation *e, int i, uint64_t target)
{
    if (target == 0) {
        return NPUQ_OVERLAP_FOUND;
    }
    if (target > e->reach[i]) {
        return NPUQ_OVERLAP_NONE;
    }
    const term t = e->terms[i]; /* there is one: reach past the last is 0 */
    const uint64_t rest = e->reach[i + 1];
    const uint64_t most = target / t.step < t.most ? target / t.step : t.most;
    const uint64_t least = target > rest ? (target - rest - 1) / t.step + 1 : 0;

    for (uint64_t n = least; n <= most; n++) {
        if (e->steps_left-- == 0) {
            e->steps_left = 0;
            return NPUQ_OVERLAP_UNKNOWN;
        }
        const npuq_overlap found = search(e, i + 1, target - n * t.step);
        if (found != NPUQ_OVERLAP_NONE) {
            return found;
        }
    }
    return NPUQ_OVERLAP_NONE;
}

static npuq_overlap solve(equation *e, uint64_t target)
{
    e->reach[e->count] = 0;
    for (int i = e->count - 1; i >= 0; i--) {
        e->reach[i] = e->reach[i + 1] + e->terms[i].step * e->terms[i].most;
    }
    e->steps_left = MAX_STEPS;
    return search(e, 0, target);
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static void add_dimensions(equation *e, const npuq_tensor *tensor, int first, uint64_t unit, uint64_t times)
{
    for (int d = first; d < tensor->ndim; d++) {
        if (tensor->shape[d] > 1 && tensor->strides[d] != 0) {
            add_term(e, magnitude(tensor->strides[d]) * unit, (uint64_t)(tensor->shape[d] - 1) * times);
        }
    }
}

npuq_overlap npuq_overlaps_itself(const npuq_tensor *tensor)
{
    /* Two indices that first differ in dimension d, by 1..extent-1, and in later ones by anything within the extents:
     * sum(stride * difference) = 0. Differences are shifted to start at 0. */
    for (int d = 0; d < tensor->ndim; d++) {
        equation e;
        uint64_t target = 0;
        npuq_overlap found;

        if (tensor->shape[d] <= 1) {
            continue;
        }
        if (tensor->strides[d] == 0) {
            return NPUQ_OVERLAP_FOUND;
        }
        for (int i = d + 1; i < tensor->ndim; i++) {
            if (tensor->shape[i] > 1) {
                target += magnitude(tensor->strides[i]) * (uint64_t)(tensor->shape[i] - 1);
            }
        }
        if (target < magnitude(tensor->strides[d])) { /* as in every slice of a row-major tensor */
            continue;
        }
        e.count = 0;
        add_dimensions(&e, tensor, d + 1, 1, 2);
        add_term(&e, magnitude(tensor->strides[d]), (uint64_t)(tensor->shape[d] - 2));
        found = solve(&e, target - magnitude(tensor->strides[d]));
        if (found != NPUQ_OVERLAP_NONE) {
            return found;
        }
    }
    return NPUQ_OVERLAP_NONE;
}

npuq_overlap npuq_overlaps(const npuq_tensor *a, const npuq_span *a_span, const npuq_tensor *b, const npuq_span *b_span)
{
    equation e;

    /* Count a's bytes up from its first and b's down from its last. The two counts meet at one byte if they add up to
     * the distance from a's first to b's last. */
    e.count = 0;
    add_dimensions(&e, a, 0, a_span->element, 1);
    add_dimensions(&e, b, 0, b_span->element, 1);
    add_term(&e, 1, a_span->element - 1 + b_span->element - 1);
    return solve(&e, (uint64_t)(b_span->last - a_span->first));
}
