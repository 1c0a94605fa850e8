/* SPDX-License-Identifier: BSD-3-Clause */
/* One element, step by step. */
#ifndef NPUQUANT_EXPLAIN_H
#define NPUQUANT_EXPLAIN_H

#include "call.h"
#include "steps.h"
#include "variant.h"

struct element {
    enum result result;
    size_t index;
};

/* The steps of an element, and its bits. */
struct steps {
    struct trace trace;
    uint64_t bits;
};

struct steps explain_steps(const struct call *call, const struct variant *variant, struct element element);

/* Finds the indices of an element in its result. Returns how many there are. */
int explain_index(const struct call *call, struct element element, size_t index[NPUQ_MAX_NDIM]);

#endif
